trireme_test(io safetensors)
