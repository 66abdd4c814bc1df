// The widget of a notebook: the live page in a frame. A browser that cannot reach the local server gets a copy of the page,
// and the numbers through the notebook.
async function reachable(address) {
  try {
    await fetch(address + "state", { mode: "no-cors", cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

function far(frame, page, news) {         // the page's own script asks for numbers; the answers come from the notebook
  const waiting = [];
  frame.liveTransport = (path, method) => method === "POST"
    ? Promise.reject(Error("The training cannot be paused from here: the browser does not reach the program."))
    : new Promise(resolve => news.length ? resolve(news.shift()) : waiting.push(resolve));
  frame.srcdoc = page.replace("<head>", "<head><script>window.liveTransport = frameElement.liveTransport;<\/script>");
  return message => waiting.length ? waiting.shift()(message) : news.push(message);
}

export default {
  render({ model, el }) {
    const frame = document.createElement("iframe"), news = [];
    frame.title = "live page of the training";
    frame.style = `width: 100%; height: ${model.get("height")}px; border: 0`;
    let take = message => news.push(message);
    model.on("msg:custom", message => take(message));
    el.append(frame);
    reachable(model.get("address")).then(near => {
      if (near) frame.src = model.get("address");
      take = near ? () => {} : far(frame, model.get("page"), news);
    });
  },
};
