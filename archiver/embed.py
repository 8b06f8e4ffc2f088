#!/usr/bin/env python3
"""embed.py TEXT OUT.c NAME: writes the text file as a C string constant, line by line, so that a compiler's message is readable."""
import sys


def main():
    source, target, name = sys.argv[1:]
    with open(source, encoding="ascii") as file:
        lines = file.read().splitlines()
    with open(target, "w", encoding="ascii") as file:
        file.write(f"/* Made from {name}'s source by embed.py. */\nextern const char {name}[];\nconst char {name}[] =\n")
        for line in lines:
            escaped = line.replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
            file.write(f'    "{escaped}\\n"\n')
        file.write("    ;\n")


if __name__ == "__main__":
    main()
