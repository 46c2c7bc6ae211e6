// The scripted model of the engine's tests, compiled into this test program as well.
#include "tests/engine/fake_model.cc"
