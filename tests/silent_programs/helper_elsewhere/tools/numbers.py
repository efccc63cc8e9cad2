def scale(t, by):
    t.mul_(by)
