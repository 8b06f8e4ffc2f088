#!/usr/bin/env python3
"""embed.py TEXT OUT.c NAME: writes a text file as a C array of characters (a string constant may be too long for a compiler)."""
import sys


def main():
    source, target, name = sys.argv[1:]
    with open(source, "rb") as file:
        text = file.read()
    numbers = [byte if byte < 128 else byte - 256 for byte in text] + [0]
    with open(target, "w", encoding="ascii") as file:
        file.write(f"extern const char {name}[];\nconst char {name}[] = {{\n")
        for at in range(0, len(numbers), 24):
            file.write("    " + ", ".join(map(str, numbers[at:at + 24])) + ",\n")
        file.write("};\n")


if __name__ == "__main__":
    main()
