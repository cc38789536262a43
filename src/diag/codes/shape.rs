//! Keys that do not exist, and values of the wrong kind.

super::codes! {
    UNKNOWN_KEY = "E0101", "unknown key",
        "Every key is checked, so that a misspelt one cannot silently leave a default in force. `rare explain KEY` tells \
         what a key means.",
        wrong: "treads: [1, 2]\n", right: "threads: [1, 2]\n";
    MISSING_KEY = "E0102", "a required key is missing",
        "Three keys have no default: `rare` (the format, so that a later program knows how to read the file), `name` (the \
         folder of the reports) and `structures` (what is measured).",
        wrong: "rare: 1\nstructures: [nm14]\n", right: "rare: 1\nname: example\nstructures: [nm14]\n";
    MISSING_VALUE = "E0103", "a key without a value",
        "The key is there and its value is not (or is `null` or `~`). To get the default, leave the key out: then it is \
         plain that nobody chose.",
        wrong: "threads:\n", right: "threads: 4\n";
    SHAPE = "E0104", "a value of the wrong shape",
        "A list or a mapping stands where a single value is due, or the other way round.",
        wrong: "trials: 5\n", right: "trials: {count: 5}\n";
    UNKNOWN_WORD = "E0105", "unknown word",
        "The value must be one word of a closed list. `rare explain KEY` prints the list.",
        wrong: "pinning: compct\n", right: "pinning: compact\n";
    NOT_BUILT = "E0106", "a structure that is not built yet",
        "The name is reserved for a structure of the literature that this version of `rare` does not have. Running without \
         it would not be the experiment that the spec describes, so nothing runs.",
        wrong: "", right: "";
    NOT_A_NUMBER = "E0107", "not a number",
        "A number is written in plain digits, with a unit where the key needs one. Forms that other YAML readers turn into \
         another number are refused instead of guessed at: `010` (8 in YAML 1.1), `0x10`, `1_000`, `1e6`, `.nan`, `+5`.",
        wrong: "key_ranges: 1_000\n", right: "key_ranges: 1k\n";
    QUOTED_NUMBER = "E0108", "a number in quotes",
        "Quotes make a text. Numbers and quantities are written without them, so that two specs that say the same look the \
         same.",
        wrong: "threads: '5'\n", right: "threads: 5\n";
    UNIT = "E0109", "unit missing or unknown",
        "Durations and sizes carry their unit in the value: `ns`, `us`, `ms`, `s`, `m`, `h`; `B`, `KiB`, `MiB`, `GiB`. \
         Counts take `k`, `M` and `G` for thousands, millions and milliards. There is no `KB`: it is 1,000 bytes to some and \
         1,024 to others.",
        wrong: "trials: {length: 3}\n", right: "trials: {length: 3s}\n";
    RANGE = "E0110", "out of range",
        "The value is a number, but no experiment can be run with it. `rare explain KEY` prints the range.",
        wrong: "threads: 0\n", right: "threads: 1\n";
    AMBIGUOUS = "E0111", "a name that other YAML readers take for something else",
        "`no`, `on`, `yes`, `true`, `null` and numbers are not text to every YAML reader: the name `no` becomes `false`. A \
         name is either quoted or another one.",
        wrong: "name: no\n", right: "name: norway\n";
    NAME = "E0112", "not a name",
        "Names become folders, labels in figures and words in claims. The name of a spec has lower-case letters, digits and \
         `-`; labels also take upper case, `.`, `_` and `+`. Both start with a letter or digit and have at most 64 \
         characters.",
        wrong: "name: My Trees\n", right: "name: my-trees\n";
    NO_VALUES = "E0113", "an empty list",
        "A list gives the values that a parameter takes. With none there is no cell to measure.",
        wrong: "threads: []\n", right: "threads: [1]\n";
    FORMAT = "E0114", "another format of the spec",
        "`rare: 1` names the format of the file. This version reads format 1 only.",
        wrong: "rare: 2\nname: example\nstructures: [nm14]\n", right: "rare: 1\nname: example\nstructures: [nm14]\n";
    INEXACT = "E0115", "not a whole number of base units",
        "Every quantity is kept as a whole number of its base unit: nanoseconds, bytes, single keys, hundredths of a \
         percent. `1.5k` keys are 1,500; `1.5` keys do not exist, and nothing is rounded behind your back.",
        wrong: "key_ranges: 1.5\n", right: "key_ranges: 1.5k\n";
    NOT_IN_QUICK = "E0116", "a key that a quick run cannot change",
        "`quick` makes the same experiment shorter. It cannot rename it, change the family or nest another `quick`.",
        wrong: "quick: {name: other}\n", right: "quick: {trials: {count: 3}}\n";
    RELATIVE_PATH = "E0117", "a path that depends on the current folder",
        "Workers run in a folder of their own. A library to preload is named by its absolute path; the content is recorded \
         as a digest.",
        wrong: "allocators: {preload: ./libmine.so}\n", right: "allocators: {preload: /opt/mine/libmine.so}\n";
}
