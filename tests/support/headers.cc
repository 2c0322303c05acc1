// Headers that all tests parse are precompiled with this file.
