//! Mistakes of the YAML itself.

super::codes! {
    SYNTAX = "E0001", "this is not YAML",
        "The file cannot be read as YAML 1.2, so nothing behind this place was looked at. The usual causes are a bracket \
         that is never closed, a tab in the indentation, and a colon or quote inside a text without quotes.",
        wrong: "threads: [1, 2\nkey_ranges: 100\n", right: "threads: [1, 2]\nkey_ranges: 100\n";
    TOO_LARGE = "E0002", "the spec is larger than 1 MB",
        "A spec is written by a person. One above 1 MB was generated, and its crossing would be refused anyway: use lists, \
         `include` and `zip` instead of one entry a cell.",
        wrong: "", right: "";
    TOO_DEEP = "E0003", "nested too deep",
        "Nothing in a spec nests deeper than a few levels; at most 32 are read.",
        wrong: "threads: [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]\n", right: "threads: [1]\n";
    ALIAS = "E0004", "anchors and aliases are not read",
        "An anchor (`&name`) and its alias (`*name`) let a value far away decide what an experiment does, and can make a \
         small file enormous. Write the value where it counts.",
        wrong: "threads: &few [1, 2]\n", right: "threads: [1, 2]\n";
    TAG = "E0005", "tags are not read",
        "A tag such as `!!str` or `!mine` changes the type of a value. Types are fixed by the key here, so a tag could only \
         contradict them.",
        wrong: "threads: !!int 4\n", right: "threads: 4\n";
    MERGE = "E0006", "merge keys are not read",
        "The merge key `<<` of YAML 1.1 is not part of YAML 1.2. To lay values over others for short runs, use `quick`.",
        wrong: "trials: {<<: {count: 3}}\n", right: "trials: {count: 3}\n";
    DOCUMENTS = "E0007", "more than one document in the file",
        "A line `---` begins another YAML document. One file is one spec: it has one plan and one hash.",
        wrong: "threads: 1\n---\nthreads: 2\n", right: "threads: [1, 2]\n";
    DUPLICATE_KEY = "E0008", "a key is written twice",
        "YAML readers differ in which of the two counts. Both places are shown; keep one.",
        wrong: "threads: 1\nthreads: 2\n", right: "threads: [1, 2]\n";
    CONTROL = "E0009", "a control character in the file",
        "The file holds a character that no editor shows, such as NUL or ESC. It usually comes from a file in another \
         encoding (UTF-16) or from a copied terminal. Save the file as UTF-8 text.",
        wrong: "question: is it\u{7} fast?\n", right: "question: is it fast?\n";
    EMPTY = "E0010", "the spec is empty",
        "The file holds no key at all. The least that a spec says is its format, its name and what it measures.",
        wrong: "# to be written\n", right: "rare: 1\nname: example\nstructures: [nm14]\n";
    KEY = "E0011", "a key is not a word",
        "A key must be one word or text. A list, a mapping or nothing at all cannot be a key.",
        wrong: "? [1, 2]\n: threads\n", right: "threads: [1, 2]\n";
    DIRECTIVE = "E0012", "directives are not read",
        "A line that begins with `%` instructs the YAML reader. A spec is always YAML 1.2 in UTF-8 and needs none.",
        wrong: "%YAML 1.2\n---\nrare: 1\nname: example\nstructures: [nm14]\n",
        right: "rare: 1\nname: example\nstructures: [nm14]\n";
}
