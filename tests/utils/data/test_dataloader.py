"""The attributes from which a loader's iterator is made: subclasses override them, and other objects have them."""

from __future__ import annotations

from tests.support.programs import Programs

program = Programs()
test_program = program.test()


def tens(torch):
    """A data set of 6 numbers that also takes lists of indices."""

    class Tens(torch.utils.data.Dataset):
        def __len__(self):
            return 6

        def __getitem__(self, i):
            return torch.tensor(i if hasattr(i, "__len__") else [i]) * 10

    return Tens()


@program.found_in("pycox, torchtuples")
def a_loader_that_fetches_whole_batches(torch):
    class Loader(torch.utils.data.DataLoader):
        def __iter__(self):
            self.started, self.collate_fn = True, lambda batch: batch
            return super().__iter__()

        @property
        def _auto_collation(self):
            return not hasattr(self, "started") and super()._auto_collation

        @property
        def _index_sampler(self):
            return self.batch_sampler if super()._auto_collation else self.sampler

    loader = Loader(tens(torch), batch_size=2)
    return [[batch.tolist() for batch in loader], len(loader)]


@program.found_in("fastai")
def an_iterator_over_another_object(torch):
    from importlib import import_module

    loading = import_module(f"{torch.__name__}.utils.data.dataloader")

    class Fake:
        _IterableDataset_len_called, generator, num_workers, prefetch_factor = None, None, 0, 2
        _auto_collation, drop_last, pin_memory, timeout = False, False, False, 0
        persistent_workers, multiprocessing_context, worker_init_fn = False, None, None
        in_order, pin_memory_device, _get_shared_seed = True, "", None
        _index_sampler = iter(range(10**9))
        dataset_kind = _dataset_kind = loading._DatasetKind.Iterable
        dataset = property(lambda self: self)

        def collate_fn(self, batch):
            return batch

        def __iter__(self):
            return iter(torch.arange(6).split(2))

    return [batch.tolist() for batch in loading._SingleProcessDataLoaderIter(Fake())]


@program
def what_is_read_at_iteration(torch):
    """The attributes may change between two epochs."""
    loader = torch.utils.data.DataLoader(tens(torch), batch_size=3)
    found = [[batch.tolist() for batch in loader]]
    loader.collate_fn = torch.cat
    found.append([batch.tolist() for batch in loader])
    single = torch.utils.data.DataLoader(tens(torch), batch_size=None)
    found += [
        [loader._auto_collation, loader._dataset_kind, single._auto_collation],
        [type(x._index_sampler).__name__ for x in (loader, single)],
        [batch.tolist() for batch in single],
    ]
    return found
