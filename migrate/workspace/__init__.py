"""Files in and out: trees, notebooks, settings, records, whole projects."""
