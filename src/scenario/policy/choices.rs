//! The words that policies choose from.

use crate::scenario::words::words;

words! {
    /// The curve.
    Curve {
        None = "none",
        Constant = "constant",
        Linear = "linear",
        Exponential = "exponential",
        Polynomial = "polynomial",
        Fibonacci = "fibonacci",
        List = "list",
        Sum = "sum",
        Expression = "expression",
    }
}

words! {
    /// Where a list is too short.
    Rest {
        Last = "last",
        First = "first",
        Stop = "stop",
    }
}

words! {
    /// What a retry counts for.
    CountBy {
        Job = "job",
        Failure = "failure",
    }
}

words! {
    /// The first retry.
    First {
        Scheduled = "scheduled",
        Free = "free",
        Exact = "exact",
    }
}

words! {
    /// The order of cap and jitter.
    Order {
        CapFirst = "cap-first",
        CapLast = "cap-last",
        CapBoth = "cap-both",
        Clip = "clip",
    }
}

words! {
    /// How a wait is randomised.
    Chance {
        None = "none",
        Full = "full",
        Equal = "equal",
        Proportional = "proportional",
        Upward = "upward",
        Downward = "downward",
        Between = "between",
        Additive = "additive",
        Growing = "growing",
        Decorrelated = "decorrelated",
        Timeline = "timeline",
    }
}

words! {
    /// What rounding does to the upper end.
    GrainEnds {
        Down = "down",
        Both = "both",
    }
}

words! {
    /// What a delay counts from.
    Clock {
        Failure = "failure",
        Claim = "claim",
    }
}

words! {
    /// What a Retry-After does.
    Heed {
        Ignore = "ignore",
        AtLeast = "at-least",
        Replace = "replace",
        Within = "within",
        Between = "between",
        GiveUpAbove = "give-up-above",
        Spread = "spread",
        Restart = "restart",
    }
}

words! {
    /// The rule of a budget.
    BudgetKind {
        None = "none",
        Tokens = "tokens",
        Ratio = "ratio",
        Concurrent = "concurrent",
        Bucket = "bucket",
    }
}

words! {
    /// What pays.
    Charge {
        Retry = "retry",
        Failure = "failure",
    }
}

words! {
    /// What opens a breaker.
    BreakerKind {
        None = "none",
        Consecutive = "consecutive",
        Ratio = "ratio",
    }
}

words! {
    /// The rule of a rate.
    RateKind {
        None = "none",
        Fixed = "fixed",
        Adaptive = "adaptive",
    }
}

words! {
    /// Who shares a piece of state.
    Scope {
        Job = "job",
        Worker = "worker",
        Process = "process",
        Shared = "shared",
    }
}
