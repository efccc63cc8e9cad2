"""Every place of a file that a decision is about, and what is known there."""
