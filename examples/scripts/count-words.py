import os

print(len(os.environ["TEXT"].split()))
