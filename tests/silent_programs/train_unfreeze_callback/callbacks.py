class Callback:
    def on_epoch_start(self, trainer, epoch):
        pass


class Unfreeze(Callback):
    def __init__(self, at):
        self.at = at

    def on_epoch_start(self, trainer, epoch):
        if epoch == self.at:
            trainer.model.unfreeze_encoder()
