"""The cases of the model: what is checked within which bounds, and which mistakes must be found. README.md says what each shows.

The state counts that README.md gives are those of the bounded form. A mistake is a macro M_... in a model; a case names the promise (as the models' heads name it)
that must be seen broken.
"""
import dataclasses

# How pan names a broken promise: a part of the assertion's text, for each model.
PROMISES = {
    "custody": {"TRIM": r"x>=thr", "CUSTODY": r"counted", "GAP": r"miss<=lost", "QUIET": r"rounds<|violated 0 "},
    "gaps": {"FALSE": r"booked<=lost", "MISSED": r"told", "BREAK": r"ea0|efirst"},
    "crossing": {"TRIM": r"~\(arch\)", "ONCE": r"[ix]>pos", "SKIP": r"i==\(pos\+1\)|page|seen&|top<=w", "END": r"pos>=plast|seen|live|arch\|", "GAP": r"told==k"},
}


@dataclasses.dataclass
class Case:
    name: str
    model: str
    bounds: str
    broken: tuple = ()  # the promises of which one must be seen broken; none: all must hold
    long: bool = False  # only under SILT_TEST_LONG=1
    last_first: bool = True  # search from the last transition: a mistake is mostly met sooner


HOLDS = [
    # one stream, one archive, everything that can happen between them
    Case("a key deleted and made anew", "custody", "-DNDEL=1 -DPART"),
    Case("a failover to a replica that is behind", "custody", "-DNFAIL=1 -DNADD=4"),
    Case("removals by others before and after a fold, folds cut short", "custody", "-DNXDEL=1 -DNFTRIM=1 -DPART -DNADD=3"),
    Case("a removal that a partial fold overtakes", "custody", "-DN=4 -DNXDEL=1 -DPART -DNADD=4 -DNCRASH=0"),
    Case("the marker removed by hand", "custody", "-DNUNMARK=1 -DNXDEL=1 -DNADD=3 -DPART", long=True),
    Case("a quiet stream comes to rest after a key made anew", "custody", "-DQUIET -DPRE -DNDEL=1 -DNADD=3"),
    Case("a quiet stream comes to rest after a failover", "custody", "-DQUIET -DPRE -DNFAIL=1 -DNADD=2"),
    Case("two copies of one archive, the key made anew", "custody", "-DCOARSE -DPRE -DGONE -DCOPIES=2 -DNCRASH=0 -DNADD=3", long=True),
    # gap arithmetic
    Case("gaps, every fold to the end", "gaps", "-DFOLD=0 -DNF=2 -DN=3", long=True),
    Case("gaps, folds that stop short", "gaps", "-DFOLD=1 -DNF=1"),
    Case("gaps, fold: on-trim", "gaps", "-DFOLD=2 -DNF=1", long=True),
    # readers
    Case("a reader forward", "crossing", "-DREADER=1 -DN=4"),
    Case("a reader forward, others removing", "crossing", "-DREADER=1 -DFX=1", long=True),
    Case("a reader that follows, others removing", "crossing", "-DREADER=2 -DFX=1 -DNCRASH=0"),
    Case("a reader backward", "crossing", "-DREADER=3 -DN=4 -DNCRASH=0"),
    Case("a reader backward, others removing", "crossing", "-DREADER=3 -DFX=1 -DNCRASH=0"),
    Case("a reader's gaps, full pages and short ones", "crossing", "-DREADER=2 -DFX=1 -DGAPS -DNCRASH=0"),
    Case("an older copy of the archive is noticed forward", "crossing", "-DREADER=1 -DOLD_COPY", long=True),
    Case("an older copy of the archive is noticed backward", "crossing", "-DREADER=3 -DOLD_COPY"),
    # the same with wider bounds
    Case("deleted twice", "custody", "-DNDEL=2 -DPART -DNADD=5", long=True),
    Case("a failover, wider", "custody", "-DNFAIL=1 -DPART -DNADD=5", long=True),
    Case("two failovers", "custody", "-DPRE -DNFAIL=2 -DNADD=3", long=True),
    Case("a key made anew and a failover", "custody", "-DPRE -DNDEL=1 -DNFAIL=1 -DNADD=3", long=True),
    Case("a failover and removals by others", "custody", "-DPRE -DNFAIL=1 -DNXDEL=1 -DNFTRIM=1 -DNADD=2", long=True),
    Case("rest after a failover, wider", "custody", "-DQUIET -DNFAIL=1 -DNADD=4", long=True),
    Case("rest after removals by others", "custody", "-DQUIET -DNXDEL=2 -DNFTRIM=1 -DNADD=3", long=True),
    Case("gaps to the end, wider", "gaps", "-DFOLD=0 -DNF=3", long=True),
    Case("gaps short, wider", "gaps", "-DFOLD=1 -DNF=2", long=True),
    Case("gaps on-trim, wider", "gaps", "-DFOLD=2 -DNF=3", long=True),
    Case("forward, wider", "crossing", "-DREADER=1 -DFX=1 -DN=4", long=True),
    Case("forward, pages of one", "crossing", "-DREADER=1 -DFX=2 -DPG=1", long=True),
    Case("follow, wider", "crossing", "-DREADER=2 -DFX=2", long=True),
    Case("backward, wider", "crossing", "-DREADER=3 -DFX=2", long=True),
    Case("a reader's gaps, pages never full", "crossing", "-DREADER=2 -DFX=2 -DGAPS -DPG=4", long=True),
]

LOSS = ("TRIM", "CUSTODY")
MISTAKES = [
    # those that the protocol must not make
    Case("MAXLEN after the read", "crossing", "-DM_MAXLEN", ("TRIM",)),
    Case("trim before commit", "crossing", "-DM_TRIM_FIRST", ("SKIP", "END")),
    Case("no second snapshot, forward", "crossing", "-DM_SNAPSHOT_FIRST -DREADER=1", ("SKIP",)),
    Case("no second snapshot, backward", "crossing", "-DM_SNAPSHOT_FIRST -DREADER=3", ("SKIP", "END"), long=True),
    Case("backward reader stops on a short page", "crossing", "-DM_SHORT_PAGE -DREADER=3", ("END",)),
    Case("counting in place of an audit", "custody", "-DM_COUNTING -DNFAIL=1 -DNADD=5", LOSS),
    Case("C taken at the audit's end", "custody", "-DM_CLOSING -DNFAIL=1", LOSS, last_first=False),
    Case("marker set by a bare command", "custody", "-DM_BARE -DNDEL=1 -DNADD=5", LOSS),
    Case("verdict not durable", "custody", "-DM_VERDICT -DPRE -DNDEL=1 -DNADD=3", LOSS),
    # those that the models suggest
    Case("C not lowered to LAST", "custody", "-DM_NOT_LOWERED -DNFAIL=1", LOSS, long=True),
    Case("a chain that continues is believed while an audit is pending", "custody", "-DM_PENDING -DPRE -DNDEL=1 -DNADD=3", LOSS),
    Case("no number in the marker", "custody", "-DM_NUMBER -DCOARSE -DPRE -DGONE -DCOPIES=2 -DNCRASH=0 -DNADD=3", LOSS),
    Case("a fork at the first conflict, above absent entries", "custody", "-DM_FORK -DNDEL=1 -DNADD=5", LOSS),
    Case("late entries found and not folded", "custody", "-DM_LATE -DNFAIL=1", LOSS),
    Case("the audit does not say where it found the marker", "custody", "-DM_FOUND -DQUIET -DNFAIL=1", ("QUIET",), long=True),
    Case("A not counted anew by the audit", "custody", "-DM_FORGET_A -DQUIET -DNFAIL=1", ("QUIET",), long=True),
    Case("LEN in place of what was fetched", "gaps", "-DM_LENGTH -DFOLD=0", ("MISSED",), long=True),
    Case("A from a later look", "gaps", "-DM_LATER_FACTS -DFOLD=0", ("BREAK", "FALSE"), long=True),
    Case("partial folds never book", "gaps", "-DM_NEVER_PARTIAL -DFOLD=2", ("MISSED",), long=True),
    Case("what a partial fold could not count is taken for a break", "gaps", "-DM_UNCOUNTED -DFOLD=1 -DNF=1", ("BREAK",)),
    Case("base of a reader's gaps taken literally", "crossing", "-DM_BASE -DREADER=2 -DFX=1 -DGAPS", ("GAP",)),
    Case("an end on a full page", "crossing", "-DM_END_FULL", ("END",), long=True),
    Case("the short way without FIRST", "crossing", "-DM_WHOLE_FIRST", ("SKIP",), long=True),
    Case("the short way without MAXDEL", "crossing", "-DM_WHOLE_DELETED -DFX=1", ("SKIP", "END"), long=True),
    Case("an older copy is read, forward", "crossing", "-DM_OLD_COPY -DREADER=1", ("SKIP",)),
    Case("an older copy is read, backward", "crossing", "-DM_OLD_COPY -DREADER=3", ("SKIP", "END"), long=True),
    # no mistake: a documented hole, and that a trim after a failover is reached at all
    Case("known hole: an older state of the key put back by hand", "custody", "-DNREST=1", LOSS, long=True),
    Case("witness: a trim after a failover", "custody", "-DM_WITNESS -DNFAIL=1", ("WITNESS",), long=True),
]
PROMISES["custody"]["WITNESS"] = r"REPL>1"
