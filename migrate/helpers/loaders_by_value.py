"""In: a dataset and all of torch's settings. Out: a loader that gives the same batches."""

from migrate.helpers.generators import DataLoaderBy


class LoaderWithTorchSettings(DataLoaderBy):
    """Reproduces torch.utils.data.DataLoader where settings come by ``**``, or as a base class.

    Workers, pinned memory and prefetching change no number.
    """

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        super().__init__(
            dataset, batch_size, shuffle, sampler, batch_sampler, collate_fn, drop_last, generator
        )
