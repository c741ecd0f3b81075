import sys

words = sys.stdin.read().split() if len(sys.argv) < 2 else sys.argv[1].split()
print(len(words))
