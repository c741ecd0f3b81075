#include "explain/inside.h"
