//! Specs that are well formed and still make no experiment.

super::codes! {
    UNKNOWN_STRUCTURE = "E0201", "unknown structure",
        "`structures` names entries of the catalogue, which `rare list` prints. A label given by `as` is not one of them.",
        wrong: "structures: [mn14]\n", right: "structures: [nm14]\n";
    LABEL_TWICE = "E0202", "two structures with one label",
        "Reports and claims tell structures apart by their labels. To use a structure twice with other parameters, give the \
         second a label: `{use: nm14, as: nm14-leaking, reclamation: none}`.",
        wrong: "structures: [nm14, nm14]\n",
        right: "structures: [nm14, {use: nm14, as: nm14-leaking, reclamation: none}]\n";
    RECLAMATION = "E0203", "a structure without the reclamation asked for",
        "A structure runs only under the reclamation schemes it was built for. Give the structure its own with \
         `{use: NAME, reclamation: …}`, or exclude the combination.",
        wrong: "", right: "";
    SEMANTICS = "E0204", "structures that do not mean the same",
        "A comparison of structures whose operations mean different things compares nothing. Where it is wanted, as with \
         `noop` for the overhead of the harness, say so: `allow: [semantics]`. The report repeats it.",
        wrong: "structures: [nm14, noop]\n", right: "structures: [nm14, noop]\nallow: [semantics]\n";
    STRUCTURE_PARAMETER = "E0205", "a parameter that the structure does not have",
        "An entry takes `use`, `as`, `reclamation`, `object_pool`, `padding`, and the structure's own parameters, which \
         `rare list` prints.",
        wrong: "structures: [{use: nm14, fanout: 16}]\n", right: "structures: [{use: nm14, as: nm14-plain}]\n";
    VALUE_TWICE = "E0206", "a value listed twice",
        "Two equal values of an axis make the same cell twice. Spelling does not matter: `3s` and `3000ms` are equal. For \
         more trials of a cell raise `trials.count`.",
        wrong: "trials: {length: [3s, 3000ms]}\n", right: "trials: {length: [3s, 300ms]}\n";
    MIX_SUM = "E0207", "an operation mix that is not 100 %",
        "The shares of `insert`, `remove`, `contains` and `range` add up to exactly 100 %. One share may be `rest`. Shares are \
         never scaled to fit: it would hide a slip of the pen.",
        wrong: "mixes: {mine: {insert: 20, remove: 25, contains: 50}}\n",
        right: "mixes: {mine: {insert: 20, remove: 25, contains: rest}}\n";
    MIX_REST = "E0208", "`rest` that cannot be resolved",
        "`rest` stands for what the other shares leave. Only one share can be it, and something must be left.",
        wrong: "mixes: {mine: {insert: rest, remove: rest}}\n", right: "mixes: {mine: {insert: 50, remove: rest}}\n";
    PREFILL = "E0209", "a prefill larger than the key range",
        "A set over a range of 100 keys cannot hold 1,000. Use a share, such as `half`, which follows the key range.",
        wrong: "key_ranges: 100\nprefill: 1k\n", right: "key_ranges: 100\nprefill: half\n";
    FEW_CPUS = "E0210", "fewer CPUs than threads",
        "An explicit list gives each thread its CPU. Two threads on one CPU would measure the scheduler.",
        wrong: "pinning: {cpus: [0, 1]}\nthreads: 3\n", right: "pinning: {cpus: [0, 1, 2]}\nthreads: 3\n";
    CPU_TWICE = "E0211", "a CPU listed twice",
        "Two threads on one CPU would measure the scheduler.",
        wrong: "pinning: {cpus: [0, 0]}\nthreads: 1\n", right: "pinning: {cpus: [0, 1]}\nthreads: 1\n";
    CLAIM = "E0212", "not a claim",
        "A claim says that one structure is faster than another: `nm14 > harris01`. `by` gives a margin and `where` a \
         scope: `{that: nm14 > harris01, by: 5%, where: {threads: 4}}`.",
        wrong: "claims: [nm14 is fast]\n",
        right: "structures: [nm14, harris01]\nclaims: [nm14 > harris01]\n";
    CLAIM_STRUCTURE = "E0213", "a claim about a structure that is not in the spec",
        "A claim is decided from the trials of this spec. It names structures by their labels.",
        wrong: "claims: [nm14 > harris01]\n", right: "structures: [nm14, harris01]\nclaims: [nm14 > harris01]\n";
    CLAIM_SELF = "E0214", "a claim that compares a structure with itself",
        "Nothing is faster than itself. To compare two settings of one structure, list it twice with two labels.",
        wrong: "claims: [nm14 > nm14]\n", right: "structures: [nm14, harris01]\nclaims: [nm14 > harris01]\n";
    RULE_VALUE = "E0215", "a rule about a value that is not in the spec",
        "`exclude` and `where` speak of values that the parameter takes in this spec. A rule about another value would do \
         nothing, and nobody would notice.",
        wrong: "threads: [1, 2]\nexclude: [{threads: 3}]\n", right: "threads: [1, 2]\nexclude: [{threads: 2}]\n";
    RULE_EMPTY = "E0216", "a rule without a parameter",
        "A rule that names no parameter matches every cell.",
        wrong: "exclude: [{}]\n", right: "threads: [1, 2]\nexclude: [{threads: 2}]\n";
    BOUND = "E0217", "a bound that has no meaning",
        "`over` and `under` compare numbers: `threads`, `key_ranges`, `range_query`, `trials.length`, `environment_padding`. A \
         condition is a value, a list of values, or one bound.",
        wrong: "exclude: [{pinning: {over: 3}}]\n",
        right: "key_ranges: [100, 100k]\nexclude: [{key_ranges: {over: 10k}}]\n";
    ZIP_LENGTHS = "E0218", "linked parameters of unequal length",
        "`zip` pairs the first value with the first, the second with the second. All lists of a group must be equally long.",
        wrong: "threads: [1, 2]\nkey_ranges: [100, 200, 300]\nzip: [[threads, key_ranges]]\n",
        right: "threads: [1, 2]\nkey_ranges: [100, 200]\nzip: [[threads, key_ranges]]\n";
    ZIP_TWICE = "E0219", "a parameter in two groups of `zip`",
        "A parameter that follows two groups would have two values at once. Join the groups, if all of them shall advance \
         together.",
        wrong: "threads: [1, 2]\nkey_ranges: [100, 200]\nzip: [[threads, key_ranges], [threads, prefill]]\n",
        right: "threads: [1, 2]\nkey_ranges: [100, 200]\nzip: [[threads, key_ranges]]\n";
    ZIP_GROUP = "E0220", "a group of `zip` with fewer than two parameters",
        "Linking needs at least two.",
        wrong: "zip: [[threads]]\n", right: "threads: [1, 2]\nkey_ranges: [100, 200]\nzip: [[threads, key_ranges]]\n";
    RULE_WITHOUT_CELL = "E0221", "an exclude rule that matches nothing",
        "Each part of the rule names values that exist, and no cell has all of them at once, so the rule leaves nothing out.",
        wrong: "threads: [1, 2]\nkey_ranges: [100, 200]\nzip: [[threads, key_ranges]]\nexclude: [{threads: 1, key_ranges: 200}]\n",
        right: "threads: [1, 2]\nkey_ranges: [100, 200]\nexclude: [{threads: 1, key_ranges: 200}]\n";
    NO_CELL = "E0222", "the exclude rules leave no cell",
        "Every cell of the crossing is excluded, and nothing would be measured.",
        wrong: "threads: 1\nexclude: [{threads: 1}]\n",
        right: "threads: [1, 2]\nexclude: [{threads: 1}]\n";
    INCLUDE_ADDS_NOTHING = "E0223", "an include rule that adds nothing",
        "Every cell that the rule describes is already part of the crossing.",
        wrong: "threads: [1, 2]\ninclude: [{threads: 2}]\n",
        right: "threads: [1, 2]\ninclude: [{threads: 64}]\n";
    CLAIM_WITHOUT_CELL = "E0224", "a claim without cells to compare",
        "A claim compares the cells of two structures in its scope. Here one of them has none: `exclude` leaves them out, or \
         no cell has all the values of `where` at once. Such a claim could never be decided.",
        wrong: "structures: [nm14, harris01]\nthreads: [1, 2]\nexclude: [{structures: harris01, threads: 1}]\nclaims: [{that: nm14 > harris01, where: {threads: 1}}]\n",
        right: "structures: [nm14, harris01]\nthreads: [1, 2]\nexclude: [{structures: harris01, threads: 1}]\nclaims: [nm14 > harris01]\n";
    NODES = "E0225", "nodes that can be neither padded nor pooled",
        "`object_pool` and `nodes.padding` reach the structures whose nodes `rare` allocates itself. A structure from a crate \
         manages its own memory. Leave the setting to the others with `{use: NAME, object_pool: …}` or \
         `{use: NAME, padding: …}`, or exclude the combination.",
        wrong: "structures: [nm14, dashmap]\nallow: [semantics]\nobject_pool: per-thread\n",
        right: "structures: [{use: nm14, object_pool: per-thread}, dashmap]\nallow: [semantics]\n";
    RANGE_QUERY = "E0226", "a structure without a range query",
        "A range query must be linearizable: it sees every update wholly or not at all. Most structures of the literature \
         have none, and one that walks while others update would answer something else. Leave the structure out, give the \
         mix no share of `range`, or exclude the combination. `rare list structures` tells which structures have one.",
        wrong: "structures: [nm14]\nmixes: {contains: 90, range: 10}\nrange_query: 100\n",
        right: "structures: [rwlock-btree]\nmixes: {contains: 90, range: 10}\nrange_query: 100\n";
    RANGE_SIZE = "E0227", "range queries without a size",
        "How long a range query takes depends on nothing more than on how many keys it asks for, so there is no default: \
         `range_query: 100` asks for the keys of an interval of 100.",
        wrong: "structures: [rwlock-btree]\nmixes: {contains: 90, range: 10}\n",
        right: "structures: [rwlock-btree]\nmixes: {contains: 90, range: 10}\nrange_query: 100\n";
    RANGE_UNUSED = "E0228", "a size of range queries that changes nothing",
        "Only the share `range` of a mix makes range queries. A size that meets no such share does nothing, and two sizes \
         that meet one mix without it make the same cell twice. Give a mix the share, or pair sizes and mixes with `zip`.",
        wrong: "structures: [rwlock-btree]\nrange_query: 100\n",
        right: "structures: [rwlock-btree]\nmixes: {contains: 90, range: 10}\nrange_query: 100\n";
    COMPARE_WITHOUT_PAIR = "E0229", "a comparison that pairs no two cells",
        "A comparison takes a cell that `base` matches and one that `changed` matches, and both must be alike in every \
         parameter that neither rule names, so that nothing else can explain the difference.",
        wrong: "structures: [nm14, bcco10]\ncompare: [{base: {structures: nm14}, changed: {structures: nm14}, predicts: instructions}]\n",
        right: "structures: [nm14, bcco10]\ncompare: [{base: {structures: nm14}, changed: {structures: bcco10}, predicts: instructions}]\n";
    UNDECIDED_IN_QUICK = "W0301", "a claim that a quick run does not decide",
        "The `quick` block leaves out the structures or values that the claim speaks of. The full run decides it.",
        wrong: "", right: "";
}
