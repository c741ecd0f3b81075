// CRC-32C (Castagnoli), by the processor's instruction where it has one, else by table. Both give the same value.
#include "store/files.h"

#include <string.h>

static uint32_t by_table(uint32_t crc, const uint8_t *bytes, size_t size)
{
    static uint32_t table[256];
    static bool ready; // filling it twice does no harm
    if (!__atomic_load_n(&ready, __ATOMIC_ACQUIRE)) {
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++) value = (value >> 1) ^ (0x82F63B78u & (0u - (value & 1u)));
            __atomic_store_n(&table[i], value, __ATOMIC_RELAXED);
        }
        __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
    }
    while (size-- > 0) crc = (crc >> 8) ^ __atomic_load_n(&table[(crc ^ *bytes++) & 0xFF], __ATOMIC_RELAXED);
    return crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t size)
{
    uint64_t wide = crc;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t word;
        memcpy(&word, bytes, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    crc = (uint32_t)wide;
    while (size-- > 0) crc = __builtin_ia32_crc32qi(crc, *bytes++);
    return crc;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) return ~by_instruction(~crc, bytes, size);
#endif
    return ~by_table(~crc, bytes, size);
}

uint32_t crc32c_by_table(uint32_t crc, const void *bytes, size_t size)
{
    return ~by_table(~crc, bytes, size);
}
