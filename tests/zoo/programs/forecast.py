"""The next values of a series: Fracast, of 85,000 parameters. The series has a trend and a cycle of 24 hours."""

import numpy as np
from fracast import FracastModel

model = FracastModel.from_pretrained(weights="fp32")


def main():
    hours = np.arange(400)
    series = 20 + 0.02 * hours + 5 * np.sin(2 * np.pi * hours / 24)
    forecast = model.forecast(series[:352])
    middle = forecast[:, model.quantiles.index(0.5)]
    for hour in (0, 12, 24, 47):
        print(f"in {hour + 1} hours: {middle[hour]:.1f}, right is {series[352 + hour]:.1f}")
    return forecast


if __name__ == "__main__":
    main()
