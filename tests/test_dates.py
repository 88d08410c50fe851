"""Dates in tables: how they are read, and their features."""

from datetime import date, datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxolearn.features import CellError, TableFeatures
from taxolearn.features.cells import as_dates

TWO = timezone(timedelta(hours=2))
MOMENT = datetime.fromisoformat("2024-05-31T14:30")
NEW_YEAR = datetime.fromisoformat("2024-01-01")


def features_of(days, more=()):
    features = TableFeatures(dates=["day"]).fit({"day": days})
    X = features.transform({"day": list(more) or days})
    return dict(zip(features.get_feature_names_out().tolist(), X.T, strict=True))


@pytest.mark.parametrize(
    ("value", "clock", "hours_ahead"),
    [
        ("2024-05-31", "2024-05-31", 0),
        (" 2024-05-31T14:30 ", "2024-05-31T14:30", 0),
        ("2024-05-31 14:30:05.25", "2024-05-31T14:30:05.25", 0),
        ("2024-05-31T14:30:05.123456789Z", "2024-05-31T14:30:05.123456", 0),
        ("2024-05-31T14:30:00+02:00", "2024-05-31T14:30", 2),
        ("2024-05-31T14:30-0530", "2024-05-31T14:30", -5.5),
        ("2024-05-31T14:30+02", "2024-05-31T14:30", 2),
        (date(2024, 5, 31), "2024-05-31", 0),
        (MOMENT, "2024-05-31T14:30", 0),
        (MOMENT.replace(tzinfo=TWO), "2024-05-31T14:30", 2),
        (np.datetime64("2024-05-31T14", "h"), "2024-05-31T14", 0),
        (np.datetime64("2024-05-31T14:30", "ns"), "2024-05-31T14:30", 0),
        ("0001-01-01", "0001-01-01", 0),
        ("9999-12-31", "9999-12-31", 0),
    ],
)
def test_what_is_a_date(value, clock, hours_ahead):
    dates = as_dates([value], "day")
    assert dates.clock[0] == np.datetime64(clock, "us")
    expected = (np.datetime64(clock, "us") - np.datetime64(0, "us")) / np.timedelta64(1, "s") - 3600 * hours_ahead
    assert dates.seconds[0] == pytest.approx(expected, abs=1e-4)


@given(
    st.datetimes(timezones=st.none() | st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m)))),
    st.sampled_from("T "),
)
def test_texts_are_read_as_python_writes_them(moment, separator):
    from_text, from_object = (as_dates([each], "day") for each in (moment.isoformat(separator), moment))
    assert from_text.clock[0] == from_object.clock[0] == np.datetime64(moment.replace(tzinfo=None), "us")
    assert from_text.seconds[0] == from_object.seconds[0]
    exact = moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc)
    assert from_text.seconds[0] == pytest.approx((exact - datetime(1970, 1, 1, tzinfo=timezone.utc)).total_seconds())


@pytest.mark.parametrize(
    "value",
    [
        *("31.05.2024", "05/31/2024", "2024-13-01", "2023-02-29", "2024-5-31", "20240531", "0000-00-00", "0000-01-01"),
        *("now", "2024-05-31T24:00", "2024-05-31T14", "2024-05-31T14:30+99:00", "2024-05-31 14:30 UTC", "٢٠٢٤-05-31"),
        *(45443, 2024.5, True, ["2024-05-31"], np.datetime64(10**10, "Y"), np.datetime64(-(10**10), "Y")),
    ],
)
def test_what_is_no_date(value):
    with pytest.raises(CellError, match=r"row 1 of day is .*, expected a date such as 2024-05-31 .* as YYYY-MM-DD"):
        as_dates(["2024-05-31", value], "day")


def test_missing_dates_have_a_feature_and_no_others():
    days = ["2024-05-31T10:00", "2023-01-02T20:00", "", None, float("nan"), np.datetime64("NaT")]
    X = features_of(days)
    np.testing.assert_array_equal(X.pop("day=missing"), [0, 0, 1, 1, 1, 1])
    assert len(X) == 13
    for values in X.values():
        np.testing.assert_array_equal(values[2:], 0)
        assert values[:2].all()
    assert "day=missing" not in features_of(days[:2])
    assert all(values[0] == 0 for values in features_of(days[:2], [None]).values())
    np.testing.assert_array_equal(list(features_of([None, ""]).values()), [[0, 0]])


def test_time_is_standardized():
    days = ["2024-01-01", "2024-01-02", "2024-01-03"]
    np.testing.assert_allclose(features_of(days)["day"], [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-6)
    # Noon in the east is before noon in the west.
    noon = features_of(["2024-01-01T12:00+06:00", "2024-01-01T12:00", "2024-01-01T12:00-06:00"])["day"]
    np.testing.assert_allclose(noon, [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-6)
    # A placeholder that is far away does not make all others the same.
    many = [date(2020, 1, 1) + timedelta(days=k) for k in range(1000)]
    assert np.ptp(features_of([*many, date(1, 1, 1)])["day"][:-1]) > 0.1


def test_cycles_are_sines_and_cosines():
    X = features_of(["2023-01-01", "2023-07-02T12:00", "2024-07-02", "2024-01-01T06:00", "2024-01-08T18:00"])
    root = np.sqrt(2)
    np.testing.assert_allclose(X["day cos(year)"][:3], [root, -root, -root], rtol=1e-5)
    np.testing.assert_allclose(X["day sin(year)"][:3], 0, atol=1e-5)
    np.testing.assert_allclose(X["day cos(2 year)"][:3], root, rtol=1e-5)
    np.testing.assert_allclose(X["day sin(day)"], [0, 0, 0, root, -root], atol=1e-5)
    np.testing.assert_allclose(X["day cos(day)"], [root, -root, root, 0, 0], atol=1e-5)
    weeks = [np.sqrt(2) * np.sin(2 * np.pi * phase / 7) for phase in (6, 6.5, 1, 0.25, 0.75)]
    np.testing.assert_allclose(X["day sin(week)"], weeks, atol=1e-5)
    assert len(X) == 13


@pytest.mark.parametrize(
    ("days", "cycles"),
    [
        ([f"{year}-12-31" for year in range(1990, 2030)], []),
        ([f"2024-{month:02}-01" for month in range(1, 13)], ["year"]),
        ([date(2024, 1, 1) + timedelta(days=k) for k in range(60)], ["year", "week"]),
        ([date(2024, 1, 1) + timedelta(weeks=k) for k in range(60)], ["year"]),
        ([NEW_YEAR + timedelta(hours=9) + timedelta(days=k) for k in range(60)], ["year", "week"]),
        ([NEW_YEAR + timedelta(hours=7 * k) for k in range(600)], ["year", "week", "day"]),
        (["2024-05-31T10:00", "2024-05-31T18:00", "2024-05-31T23:00"], ["day"]),
    ],
)
def test_cycles_are_those_in_which_dates_differ(days, cycles):
    assert TableFeatures(dates=["day"]).fit({"day": days}).cycles_ == {"day": cycles}


def test_columns_of_all_kinds_are_the_same():
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    days = [NEW_YEAR + timedelta(hours=31 * k) for k in range(50)]
    expected = TableFeatures(dates=["day"]).fit_transform({"day": [day.isoformat() for day in days]})
    exact = np.array(days, dtype="M8[ns]")
    frames = [pandas.DataFrame({"day": exact}), polars.DataFrame({"day": exact}), polars.DataFrame({"day": days})]
    frames += [{"day": exact}, {"day": exact.astype("M8[s]")}, {"day": days}, frames[0].astype(object)]
    for frame in frames:
        np.testing.assert_array_equal(TableFeatures(dates=["day"]).fit_transform(frame), expected)
    zoned = pandas.DataFrame({"day": pandas.Series(exact).dt.tz_localize("Asia/Kolkata")})
    np.testing.assert_allclose(TableFeatures(dates=["day"]).fit_transform(zoned), expected, atol=1e-6)
    gaps = TableFeatures(dates=["day"]).fit_transform({"day": ["2024-05-31", "", "2024-01-01"]})
    for frame in (pandas.DataFrame, polars.DataFrame):
        table = frame({"day": [datetime.fromisoformat("2024-05-31"), None, NEW_YEAR]})
        np.testing.assert_array_equal(TableFeatures(dates=["day"]).fit_transform(table), gaps)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.dates(date(1800, 1, 1), date(2200, 1, 1)), min_size=3, max_size=20), st.integers(-200, 200))
def test_weeks_repeat(days, weeks):
    days += [date(2024, 1, 1) + timedelta(days=k) for k in range(10)]
    moved = [day + timedelta(weeks=weeks) for day in days]
    before, after = features_of(days), features_of(days, moved)
    for name in ("day sin(week)", "day cos(week)"):
        np.testing.assert_allclose(before[name], after[name], atol=1e-5)
