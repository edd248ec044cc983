/* Protobuf messages, which no test on a foreign processor writes or reads. */
#include <protobuf-c/protobuf-c.h>

#include <stdlib.h>

const char protobuf_c_empty_string[] = "";

size_t protobuf_c_message_get_packed_size(const ProtobufCMessage *message)
{
    (void)message;
    abort();
}

size_t protobuf_c_message_pack(const ProtobufCMessage *message, uint8_t *to)
{
    (void)message;
    (void)to;
    abort();
}

size_t protobuf_c_message_pack_to_buffer(const ProtobufCMessage *message, ProtobufCBuffer *to)
{
    (void)message;
    (void)to;
    abort();
}

ProtobufCMessage *protobuf_c_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                            ProtobufCAllocator *allocator, size_t size, const uint8_t *data)
{
    (void)descriptor;
    (void)allocator;
    (void)size;
    (void)data;
    return NULL;
}

void protobuf_c_message_free_unpacked(ProtobufCMessage *message, ProtobufCAllocator *allocator)
{
    (void)message;
    (void)allocator;
}
