# How a run that is open is shown.
tycho_test(tensor_text_test SOURCES trainer/session/tensor_text_test.cpp LIBS session)
