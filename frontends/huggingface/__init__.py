"""Hugging Face models: configuration, tokenizer, the module on the meta device."""
