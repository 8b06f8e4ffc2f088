/* Gap arithmetic (protocol.md §6; archiver/custody.c silt_gap_count, fetch.c note_count): one object whose chain never breaks. XADD, XDEL and XTRIM by others between any two
 * steps, a fetch of two pages with a look each, folds that stop anywhere, our trims, a crash at any step.
 *
 * What is promised, and asserted here:
 *   FALSE   never more is booked than was lost, and nothing twice
 *   MISSED  a commit of a quiet stream that reaches LAST0, or whose look could know, leaves nothing lost unbooked
 *   BREAK   a chain that did not break is never taken for broken (more entries than promised, or missing
 *           ones that nothing explains)
 *
 * FOLD 0: every fold goes to LAST0; 1: to any P <= LAST0 (limits of a pass); 2: `fold: on-trim`, never to LAST0 while the newest entry is live.
 * NF: removals by others. tests/model/README.md lists the mistakes (-D) and what each shows. */
#ifndef N
#define N 4
#endif
#ifndef NF
#define NF 2
#endif
#ifndef FOLD
#define FOLD 1
#endif
#define UNKNOWN 255
#define BIT(i) (1<<(i))
#define UPTO(i) ((1<<((i)+1))-1)
short live=0, arch=0, added=0; byte EA=0, LAST=0, C=0, A=0, nf=0, booked=0, MAXDEL=0; bit quiet=0, crashed=0, exact=1; /* exact: the last commit reached its LAST0, so that A is what it says */

#ifdef M_UNCOUNTED /* a partial fold has passed deleted entries that its look could not count, and the next fold takes them for a break */
#define UNCOUNTED false
#else
#define UNCOUNTED !exact
#endif

proctype World(){ byte i;
 do
 :: atomic{ LAST<N -> i=LAST+1; do :: i<N -> i++ :: break od; live=live|BIT(i); added=added|BIT(i); LAST=i; EA++; printf("EV XADD %d\n",i); i=0 }
 :: atomic{ nf<NF -> nf++; select(i:1 .. N); if :: if :: (live & BIT(i)) && i>MAXDEL -> MAXDEL=i :: else fi; live=live & ~BIT(i); printf("EV XDEL %d\n",i) :: live=live & ~UPTO(i); printf("EV others trim <=%d\n",i) fi; i=0 }
 :: d_step{ quiet=1; printf("EV quiet from here\n") }; break
 od }

inline COUNT(ret,set) { ret=0; i=1; do :: i<=N -> if :: (set) & BIT(i) -> ret++ :: else fi; i++ :: else -> break od; i=0 }
inline LOWEST(ret,set) { ret=1; do :: ret<=N && !((set) & BIT(ret)) -> ret++ :: else -> break od; if :: ret>N -> ret=0 :: else fi }
/* note_count: a look that shows every live entry above what was fetched by then tells what is missing up to it */
inline NOTE(through,sofar) { LOWEST(first,live); if :: first==0 || first>through -> COUNT(length,live); known=EA-A-sofar-length :: else fi; first=0; length=0 }
#ifdef M_NO_LATER_LOOK /* protocol.md as it was: only the opening look may tell what is missing of a partial fold */
#define LATER(through,sofar) skip
#else
#define LATER(through,sofar) NOTE(through,sofar)
#endif

proctype Siltd(){ byte l0=0, ea0=0, p=0, mid=0, n=0, known=0, i=0, first=0, length=0, lost=0, before=0, rounds=0, top=0, miss=0, efirst=0, emax=0; short g=0; bit told=0;
 do
 :: d_step{ l0=LAST; ea0=EA; known=UNKNOWN; g=0; n=0; top=N; do :: top>0 && !(live & BIT(top)) -> top-- :: else -> break od;
      COUNT(lost,(added & ~arch & ~live & UPTO(l0)));
      if :: quiet -> rounds++ :: else fi; printf("  look: EA %d LAST %d, C %d A %d, booked %d of %d\n",ea0,l0,C,A,booked,lost);
      assert(booked<=lost);                                         /* FALSE */
      assert(!told || booked==lost);                                /* MISSED */
      if :: rounds>2 -> rounds=2 :: else fi; lost=0; told=0;
#ifdef M_LENGTH /* LEN of the look in place of what was fetched, where FIRST > C */
      LOWEST(first,live); if :: first>C -> COUNT(length,live); n=length :: else fi; first=0; length=0;
#endif
      NOTE(C,0) }
    atomic{ p=l0;
#if FOLD==1
      do :: p>C && rounds<2 -> p-- :: break od
#elif FOLD==2
      if :: top==l0 && p>C -> p-- :: else fi; do :: p>C && !quiet -> p-- :: break od
#endif
      ; if :: p<C -> p=C :: else fi; mid=C; do :: mid<p -> mid++ :: break od };
    d_step{ g=live & UPTO(mid) & ~UPTO(C); LATER(C,0) };                      /* first page, with its look */
    d_step{ COUNT(before,g);                                                  /* second page */
      g=g | (live & UPTO(p) & ~UPTO(mid));
      top=mid; do :: top>C && !(g & BIT(top)) -> top-- :: else -> break od;   /* the last entry fetched by then */
      LATER(top,before); before=0; LOWEST(efirst,live); emax=MAXDEL; top=N; do :: top>0 && !(live & BIT(top)) -> top-- :: else -> break od };
    if
    :: d_step{ !crashed -> crashed=1; rounds=0; printf("  CRASH before the commit\n") }
    :: d_step{
#ifndef M_LENGTH
         COUNT(n,g);
#else
         if :: n==0 || p<l0 -> COUNT(n,g) :: else fi;
#endif
         /* a fold that stops short ends at an entry */
         if :: p<l0 -> do :: p>C && !(g & BIT(p)) -> p-- :: else -> break od :: else fi;
         if :: p==l0 -> assert(A+n<=ea0); miss=ea0-A-n;                                /* to LAST0: counts what was fetched */
                       assert(miss==0 || efirst==0 || efirst>C || emax>C || UNCOUNTED)                /* BREAK */
            :: p<l0 && known!=UNKNOWN -> assert(known<128); miss=known
            :: else -> miss=0 fi;
#ifdef M_NEVER_PARTIAL /* a partial fold books nothing */
         if :: p<l0 -> miss=0 :: else fi;
#endif
         told=(rounds>0 && (p==l0 || known!=UNKNOWN));                                  /* nothing changed since the look, and it could know */
         booked=booked+miss; arch=arch|g; C=p; exact=(p==l0);
#ifdef M_LATER_FACTS /* A from a later look than the one that set LAST0 */
         A=(p==l0 -> EA : A+n+miss);
#else
         A=(p==l0 -> ea0 : A+n+miss);
#endif
         printf("  COMMIT C %d A %d, booked %d\n",C,A,miss); miss=0 };
       if
       :: d_step{ !crashed -> crashed=1; rounds=0; printf("  CRASH before the trim\n") }
       :: d_step{ i=(C<top -> C : top-1); if :: top==0 -> i=0 :: else fi; live=live & ~UPTO(i); i=0; printf("  our trim\n") } /* the newest stays */
       :: quiet -> skip
       fi
    fi;
    d_step{ g=0; efirst=0; emax=0; l0=0; ea0=0; p=0; mid=0; n=0; known=0; top=0; miss=0; first=0; length=0; lost=0 }
 od }
init { atomic{ run Siltd(); run World() } }
