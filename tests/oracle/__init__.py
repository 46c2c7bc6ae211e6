"""NumPy oracle of DeepSeek-V4.1-Flash, written from its specification alone: see README.md."""
