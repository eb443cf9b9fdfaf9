"""Many fits trained together."""
