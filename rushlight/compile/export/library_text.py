"""The texts beside an exported library: the C header, and the JavaScript that calls a WebAssembly module."""

HEADER = """\
/* {title}, made by rushlight.compiler.export {version} for the processor {cpu}. */
#ifndef {upper}_H
#define {upper}_H

#include <stdint.h>

#define {upper}_WORKSPACE_BYTES {workspace}

#ifdef __cplusplus
extern "C" {{
#endif

/* Writes {fills}. All arrays are in C order:
{shapes}
   workspace: {upper}_WORKSPACE_BYTES bytes, at a multiple of 64. Each thread needs its own.
   Returns {returns}. */
int {name}({parameters});

#ifdef __cplusplus
}}
#endif
#endif
"""

JAVASCRIPT = """\
// {title}, made by rushlight.compiler.export {version}
//   import load from "./{name}.mjs";
//   const {name} = await load();
//   const {{ {results} }} = {name}({given}); // typed arrays in, typed arrays out
const ARRAYS = [ // name, type, numbers (of one sample), any number of samples
{arrays}
];
const INPUTS = {inputs}, WORKSPACE = {workspace}; // bytes of the workspace

export default async function load(url = new URL("{name}.wasm", import.meta.url)) {{
  const local = url.protocol === "file:"; // Node's fetch does not read files
  const bytes = local ? await (await import("node:fs/promises")).readFile(url) : await (await fetch(url)).arrayBuffer();
  const {{ memory, {name}: run, __heap_base: heap }} = (await WebAssembly.instantiate(bytes)).instance.exports;
  return ({parameters}) => {{
    const places = [], counts = ARRAYS.map(([, , count, sampled]) => (sampled ? count * {count} : count));
    let end = heap.value;
    for (const bytes of [...ARRAYS.map(([, Type], k) => counts[k] * Type.BYTES_PER_ELEMENT), WORKSPACE]) {{
      places.push((end = Math.ceil(end / 64) * 64));
      end += bytes + 64; // a vector may be read across the end of an array
    }}
    if (end > memory.buffer.byteLength) memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
    const views = ARRAYS.map(([, Type], k) => new Type(memory.buffer, places[k], counts[k]));
    inputs.forEach((x, k) => {{
      if (x.length !== counts[k]) throw new RangeError(`${{ARRAYS[k][0]}} has ${{x.length}} numbers, not ${{counts[k]}}`);
      views[k].set(x);
    }});
    if (run({samples}...places)) throw new RangeError("an index is out of range");
    return Object.fromEntries(ARRAYS.slice(INPUTS).map(([name], k) => [name, views[INPUTS + k].slice()]));
  }};
}}
"""
