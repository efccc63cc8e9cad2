"""The frozen records that every package speaks in: places, edits, results, errors."""
