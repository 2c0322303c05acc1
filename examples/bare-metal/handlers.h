#pragma once

extern volatile unsigned ticks, fiqs, undefined, data_aborts, prefetch_aborts;

void service_print(const char* text);
unsigned service_ticks(void);
void service_exit(unsigned status);
