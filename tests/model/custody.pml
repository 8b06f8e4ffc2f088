/* Custody: one stream, one archive, and everything that can happen between them (protocol.md §1 to §4, §7; archiver/judge.c, fold_stream.c, shed.c, trim.lua).
 *
 * What is promised, and asserted here:
 *   TRIM     what a trim of ours removes is in the newest life of the archive, with these bytes
 *   CUSTODY  when a script of ours passes, no live entry at or below C is missing there (a reader takes them from the archive)
 *   GAP      no fold books more entries as missing than were lost
 *   QUIET    (option) once the stream is quiet, all but the newest entry is trimmed within ROUNDS looks, and no copy is refused
 *
 * The server: ids 1..N, bytes 1 or 2. Events, as budgets: NADD XADDs, NDEL keys deleted, NFAIL failovers to a replica that stands anywhere behind, NXDEL and
 * NFTRIM removals by others, NUNMARK markers removed by hand, NCRASH crashes of siltd between any two steps, NREST an older state of the key put
 * back by hand. COPIES 2: a copy of the archive's directory runs too. PRE: begin with 1, 2 live, folded, the marker at 2; with GONE the key has
 * been deleted since.
 * tests/model/README.md lists the mistakes (-D) and what each shows. */
#ifndef N
#define N 3
#endif
#ifndef NADD
#define NADD 4
#endif
#ifndef NDEL
#define NDEL 0
#endif
#ifndef NFAIL
#define NFAIL 0
#endif
#ifndef NXDEL
#define NXDEL 0
#endif
#ifndef NFTRIM
#define NFTRIM 0
#endif
#ifndef NUNMARK
#define NUNMARK 0
#endif
#ifndef NREST
#define NREST 0
#endif
#ifndef NCRASH
#define NCRASH 1
#endif
#ifndef COPIES
#define COPIES 1
#endif
#ifndef ROUNDS
#define ROUNDS 9
#endif
#define UNKNOWN 255

/* ---- what a look shows ---- */
typedef Facts {
  byte EA; byte LAST; byte LEN; byte MAXD; byte REPL; /* entries-added ... master_replid */
  byte FIRST; byte FB; byte TOP; byte TB;             /* first and last live entry, and their bytes */
  byte mk; byte mpos                                  /* the marker's number (0: none) and where it stands */
};
typedef Server { byte e[N+1]; byte EA; byte LAST; byte MAXD; byte mk; byte mpos; bit there; byte added /* ghost: ids that this object was given */ };
/* One archive: its row, the entries of its newest life, and what siltd keeps in memory (lost in a crash: counted). */
typedef Archive {
  byte cur[N+1]; byte W; byte HW; byte C; byte A; byte num; byte found; bit folded; bit pend; bit absent; bit counted; Facts D
};
Server S;
#if NFAIL>0 || NREST>0
Server R; bit standing=0;
#endif
Archive a[COPIES];
byte REPL=1, drawn=1;
byte nadd, ndel, nfail, nxdel, nftrim, nunmark, nrest, ncrash;
bit quiet=0, go2=0, other=0; /* other: from here on entries may hold other bytes */

#define BIT(i) (1<<(i))
#define X a[me]

inline LOOK(f) {
  f.EA=S.EA; f.LAST=S.LAST; f.MAXD=S.MAXD; f.mk=S.mk; f.mpos=S.mpos; f.REPL=REPL; f.LEN=0; f.FIRST=0; f.FB=0; f.TOP=0; f.TB=0;
  q=1; do :: q<=N -> if :: S.e[q] -> f.LEN++; f.TOP=q; f.TB=S.e[q]; if :: f.FIRST==0 -> f.FIRST=q; f.FB=S.e[q] :: else fi :: else fi; q++ :: else -> break od; q=0
}
inline ZERO(f) { f.EA=0; f.LAST=0; f.LEN=0; f.MAXD=0; f.REPL=0; f.FIRST=0; f.FB=0; f.TOP=0; f.TB=0; f.mk=0; f.mpos=0 }
inline COPY_FACTS(d,s) { d.EA=s.EA; d.LAST=s.LAST; d.LEN=s.LEN; d.MAXD=s.MAXD; d.REPL=s.REPL; d.FIRST=s.FIRST; d.FB=s.FB; d.TOP=s.TOP; d.TB=s.TB; d.mk=0; d.mpos=0 }
inline COPY_SERVER(d,s) { q=1; do :: q<=N -> d.e[q]=s.e[q]; q++ :: else -> break od; q=0; d.EA=s.EA; d.LAST=s.LAST; d.MAXD=s.MAXD; d.mk=s.mk; d.mpos=s.mpos; d.there=s.there; d.added=s.added }

/* silt_custody_break: do the later facts continue the earlier ones? */
#define GROWS(x,y) (y.EA>=x.EA && y.LAST>=x.LAST && (y.EA==x.EA || y.LAST>x.LAST) && y.LEN<=x.LEN+(y.EA-x.EA) && y.MAXD>=x.MAXD \
  && (y.FIRST==0 || (x.FIRST==0 -> y.FIRST>x.LAST : y.FIRST>x.FIRST || (y.FIRST==x.FIRST && y.FB==x.FB))))
#ifdef M_COUNTING /* counting in place of an audit: a failover that leaves every number as it was is believed */
#define CONTINUES(x,y) GROWS(x,y)
#else
#define CONTINUES(x,y) (y.REPL==x.REPL && GROWS(x,y))
#endif
#define SAME_MARKER(x,y) (y.mk==x.mk && y.mpos==x.mpos)
/* silt_fetch_break: may what came with look m stand beside what came with look l? */
#define GOES_ON(l,m) (S.there && CONTINUES(l,m) && SAME_MARKER(l,m))
/* trim.lua: the whole of look l against the server of this moment */
#define PASSES(l,m) (GOES_ON(l,m) && m.FIRST==l.FIRST && m.FB==l.FB)

#ifdef COARSE /* fewer states for two copies: from look to commit is one step */
byte busy=0;
#define HOLD busy=_pid
#define LET_GO busy=0
#define ALONE provided (busy==0 || busy==_pid)
#define SKIPS_IDS && false
#else
#define HOLD skip
#define LET_GO skip
#define ALONE
#define SKIPS_IDS
#endif

/* ---- everybody else ---- */
proctype World() ALONE { byte i=0, v=0, q=0;
 do
 :: atomic{ nadd<NADD && S.LAST<N -> i=S.LAST+1; do :: i<N SKIPS_IDS -> i++ :: break od;
      v=1; if :: other -> if :: v=2 :: skip fi :: else fi;
      nadd++; S.e[i]=v; S.LAST=i; S.EA++; S.there=1; S.added=S.added|BIT(i); printf("EV XADD %d bytes %d (EA %d)\n",i,v,S.EA); i=0; v=0 }
#if NXDEL>0
 :: atomic{ nxdel<NXDEL && S.there -> nxdel++; select(i:1 .. N); if :: S.e[i] -> S.e[i]=0; if :: i>S.MAXD -> S.MAXD=i :: else fi :: else fi; printf("EV XDEL %d\n",i); i=0 }
#endif
#if NFTRIM>0
 :: atomic{ nftrim<NFTRIM && S.there -> nftrim++; select(i:2 .. (N+1)); printf("EV others trim <%d\n",i); q=1; do :: q<i -> S.e[q]=0; q++ :: else -> break od; q=0; i=0 }
#endif
#if NDEL>0
 :: d_step{ ndel<NDEL && S.there -> ndel++; other=1; printf("EV DEL\n"); q=1; do :: q<=N -> S.e[q]=0; q++ :: else -> break od; q=0; S.EA=0; S.LAST=0; S.MAXD=0; S.mk=0; S.mpos=0; S.there=0; S.added=0 }
#endif
#if NUNMARK>0
 :: d_step{ nunmark<NUNMARK && S.mk -> nunmark++; S.mk=0; S.mpos=0; printf("EV XGROUP DESTROY of the marker\n") }
#endif
#if NFAIL>0 || NREST>0
 :: d_step{ nfail<NFAIL || nrest<NREST -> COPY_SERVER(R,S); standing=1; printf("EV a replica, or a dump, stands here\n") }
#endif
#if NFAIL>0
 :: d_step{ nfail<NFAIL && standing -> nfail++; printf("EV FAILOVER\n"); COPY_SERVER(S,R); REPL++; other=1 }
#endif
#if NREST>0
 :: d_step{ nrest<NREST && standing -> nrest++; printf("EV RESTORE of an older state\n"); COPY_SERVER(S,R); other=1 }
#endif
#if COPIES>1
 :: d_step{ !go2 -> go2=1; printf("EV the directory is copied, and siltd started on the copy\n");
      q=1; do :: q<=N -> a[1].cur[q]=a[0].cur[q]; q++ :: else -> break od; q=0; a[1].W=a[0].W; a[1].HW=a[0].HW; a[1].C=a[0].C; a[1].A=a[0].A; a[1].num=a[0].num; a[1].found=a[0].found;
      a[1].folded=a[0].folded; a[1].pend=a[0].pend; a[1].absent=a[0].absent; COPY_FACTS(a[1].D,a[0].D) }
#endif
#ifdef QUIET
 :: d_step{ !quiet -> quiet=1; printf("EV quiet from here\n") }; break
#endif
 od }

/* ---- siltd ---- */
#ifdef M_NUMBER /* no number in the marker */
#define DRAW skip
#else
#define DRAW drawn++; X.num=drawn
#endif
#define CRASHES if :: goto crash :: skip fi
#ifdef M_FOUND /* the audit's commit does not say where it found the marker */
#define FOUND_BY_AUDIT skip
#else
#define FOUND_BY_AUDIT X.found=l.mpos
#endif
#ifdef M_PENDING /* a chain that continues is believed although an audit is pending */
#define BELIEVES_CHAIN 1
#else
#define BELIEVES_CHAIN 0
#endif
/* ours, at C or where the last commit found it; the others continue, and so do the edges */
#define ROW_CONTINUES (l.mk && !brk && CONTINUES(X.D,l) && (l.mpos==X.C || l.mpos==X.found))
#if defined(QUIET) || defined(COARSE)
#define MAY_STOP_SHORT
#else
#define MAY_STOP_SHORT :: break
#endif

proctype Siltd(byte me) ALONE { Facts l, m; byte q=0, x=0, thr=0, n=0, miss=0, known=0, lost=0, conf=0, abs=0, eq=0, caud=0, rounds=0; byte pg[N+1]; bit brk=0, ok=0;
 if :: me==0 || go2 fi;
start: skip;
 do
 :: d_step{ HOLD; ZERO(m); x=0; thr=0; n=0; miss=0; known=0; lost=0; conf=0; abs=0; eq=0; caud=0; brk=0; ok=0; q=1; do :: q<=N -> pg[q]=0; q++ :: else -> break od; q=0;
      LOOK(l);
      printf("  [%d] look: EA %d LAST %d LEN %d FIRST %d MAXDEL %d marker %d at %d | W %d C %d A %d number %d found %d pending %d\n",me,l.EA,l.LAST,l.LEN,l.FIRST,l.MAXD,l.mk,l.mpos,X.W,X.C,X.A,X.num,X.found,X.pend);
      /* compare_edges: the first and the last entry, where the archive has them */
      if :: X.folded && l.FIRST>0 && l.FIRST<=X.C && X.cur[l.FIRST]!=l.FB -> brk=1 :: else fi;
      if :: X.folded && l.TOP>0 && l.TOP<=X.C && X.cur[l.TOP]!=l.TB -> brk=1 :: else fi;
#ifdef QUIET
      if :: quiet && me==0 -> rounds++ :: else fi; assert(rounds<ROUNDS)
#endif
    }
    /* silt_custody_decide, in its order */
    if
    :: !S.there -> if :: quiet -> goto stop :: else fi
    :: else ->
#ifndef M_NUMBER
    if
    :: l.mk && l.mk!=X.num -> printf("  [%d] REFUSED: another copy's marker\n",me); goto refused
    :: else ->
#endif
    if
    :: X.pend && !(BELIEVES_CHAIN && ROW_CONTINUES) -> goto audit
    :: !X.pend && !X.folded ->
       if
       :: !l.mk -> LET_GO; atomic{ LOOK(m); if :: PASSES(l,m) -> S.mk=X.num; S.mpos=0; printf("  [%d] first contact: marker at 0\n",me) :: else fi }; CRASHES
       :: l.mk && l.mpos==0 -> goto work
       :: else -> goto refused
       fi
    :: !X.pend && X.folded && l.mk && l.mpos>X.HW -> printf("  [%d] REFUSED: the marker stands above every W\n",me); goto refused
    :: X.folded && ROW_CONTINUES && (!X.pend || BELIEVES_CHAIN) -> goto work
    :: !X.pend && X.folded && !l.mk && l.FIRST==0 -> if :: quiet -> goto stop :: else fi
    :: !X.pend && X.folded && !ROW_CONTINUES && !(l.mk && l.mpos>X.HW) && !(!l.mk && l.FIRST==0) -> goto doubt
    fi
#ifndef M_NUMBER
    fi
#endif
    fi
 od;

doubt: skip; /* the verdict, before anything else is touched; a marker that is to be made gets its number here */
  d_step{ X.pend=1; X.absent=!l.mk; if :: !l.mk -> DRAW :: else fi; printf("  [%d] VERDICT: audit pending, marker %d\n",me,X.num); LET_GO };
  CRASHES; goto start;

audit:
  if
  :: !l.mk && l.FIRST==0 -> if :: quiet -> goto stop :: goto start fi  /* an empty stream without marker: the next entry decides */
  :: !l.mk && l.FIRST>0 -> LET_GO; atomic{ LOOK(m); if :: PASSES(l,m) -> S.mk=X.num; S.mpos=0; printf("  [%d] marker %d made at 0\n",me,X.num) :: else fi }; CRASHES; goto start
  :: else
  fi;
  /* the audit is opened by a look that shows the marker */
  d_step{
#ifdef M_NOT_LOWERED /* C stays at W though LAST is below it */
    caud=X.W
#else
    caud=(l.LAST<X.W -> l.LAST : X.W)
#endif
    ; printf("  [%d] audit opened, up to %d\n",me,caud) };
  CRASHES;
  /* two pages, each with a look of its own */
  d_step{ HOLD; x=1; do :: x<=caud && x<=2 -> pg[x]=S.e[x]; x++ :: else -> break od; x=0; LOOK(m); ok=GOES_ON(l,m) };
  if :: !ok -> goto start :: else fi;
  d_step{ x=3; do :: x<=caud && x<=N -> pg[x]=S.e[x]; x++ :: else -> break od; x=0; LOOK(m); ok=GOES_ON(l,m) };
  if :: !ok -> goto start :: else fi;
  CRASHES;
  d_step{ /* the comparison */
#ifdef M_CLOSING /* C by the audit's end, not by its opening */
    caud=(m.LAST<X.W -> m.LAST : X.W);
#endif
    x=1; do :: x<=caud -> if :: pg[x] -> if :: X.cur[x]==0 -> if :: abs==0 -> abs=x :: else fi
                                               :: X.cur[x]==pg[x] -> eq=1
                                               :: else -> if :: conf==0 -> conf=x :: else fi fi :: else fi; x++ :: else -> break od; x=0 };
  /* conflict: a fork. Only absent ones where the marker was gone: a new object, so a fork; branded ids that go on above W may be taken for late ones. */
  if
  :: conf>0 -> ok=1
  :: conf==0 && abs>0 && X.absent && !eq -> if :: ok=1 :: l.LAST>=X.W -> ok=0 fi
  :: else -> ok=0
  fi;
  d_step{ /* one commit: verdict, C, A, facts, life */
    if :: ok -> /* the fork is the first live id after the longest equal prefix, and so never above an entry that is absent */
#ifdef M_FORK /* at the first conflict: absent ones below it are forgotten */
                q=(conf>0 -> conf : abs);
#else
                q=(conf>0 && (abs==0 || conf<abs) -> conf : abs);
#endif
                x=q; do :: x<=N -> X.cur[x]=0; x++ :: else -> break od; x=0; X.C=q-1; X.W=q-1; q=0
#ifdef M_LATE /* late entries are not folded: C stays above them */
       :: else -> X.C=caud
#else
       :: !ok && abs>0 -> X.C=abs-1
       :: !ok && abs==0 -> X.C=caud
#endif
    fi;
    x=1; do :: x<=X.C -> if :: pg[x] && m.FIRST>0 && x>=m.FIRST -> n++ :: else fi; x++ :: else -> break od; x=0;
#ifdef M_FORGET_A /* A as it was */
#else
    X.A=m.EA-(m.LEN-n);
#endif
    COPY_FACTS(X.D,m); FOUND_BY_AUDIT; X.pend=0; X.absent=0; X.counted=1;
    printf("  [%d] AUDIT ENDS: W %d C %d A %d, new life %d\n",me,X.W,X.C,X.A,ok); LET_GO };
  CRASHES; goto start;

work: /* a look that continues: fold, or trim what is folded; in any order */
#define UNFOLDED (X.C<l.LAST || X.A!=l.EA || !X.folded)
  if
  :: UNFOLDED -> goto fold
  :: X.folded && !(quiet && UNFOLDED) -> goto shed
  fi;

/* After a fold that stopped short what others removed below C may not be booked yet. */
#define UNBOOKED (X.folded && X.C!=X.D.LAST -> 1 : X.C+1)
fold: skip; /* (C, LAST0] in two pages, each with a look; a page whose look breaks is dropped, and what came before it is kept */
  d_step{ thr=(X.C+1<l.LAST -> X.C+1 : l.LAST); /* where the first page ends */
    known=(l.FIRST==0 || l.FIRST>X.C -> l.EA-X.A-l.LEN : UNKNOWN);
    x=X.C+1; do :: x<=thr -> pg[x]=S.e[x]; x++ :: else -> break od; x=0; LOOK(m); ok=GOES_ON(l,m);
    if :: ok && (m.FIRST==0 || m.FIRST>X.C) -> known=m.EA-X.A-m.LEN :: else fi;
    x=UNBOOKED; do :: x<=N -> if :: (S.added & BIT(x)) && !S.e[x] && (x>X.C || !X.cur[x]) -> lost++ :: else fi; x++ :: else -> break od; x=0 };
  if :: !ok -> goto start :: else fi;
#ifdef PART
  if :: thr<l.LAST && !quiet -> ok=0 :: skip fi; /* the pass ends in the middle */
#endif
  if :: ok ->
     d_step{ x=thr+1; do :: x<=l.LAST -> pg[x]=S.e[x]; x++ :: else -> break od; x=0; LOOK(m); ok=GOES_ON(l,m);
       if :: ok -> thr=l.LAST; lost=0; x=UNBOOKED; do :: x<=l.LAST -> if :: (S.added & BIT(x)) && !pg[x] && (x>X.C || (!X.cur[x] && !S.e[x])) -> lost++ :: else fi; x++ :: else -> break od; x=0 :: else fi }
     :: else
  fi;
  d_step{ if :: !ok -> do :: thr>X.C && !pg[thr] -> thr-- :: else -> break od :: else fi }; /* a fold that stops short ends at an entry */
  if :: !ok && thr==X.C && known==UNKNOWN -> goto start :: else fi;
  CRASHES;
  d_step{ x=X.C+1; do :: x<=thr -> if :: pg[x] -> n++; if :: x<=X.W && X.cur[x] && X.cur[x]!=pg[x] -> conf=x :: else fi :: else fi; x++ :: else -> break od; x=0;
    if :: ok && X.A+n>l.EA -> brk=1 :: else fi;                  /* more than the look promises */
    if :: ok && X.A+n<=l.EA -> miss=l.EA-X.A-n :: else fi;
    if :: !ok && known!=UNKNOWN -> if :: known>128 -> brk=1 :: else -> miss=known fi :: else fi;
    if :: ok && miss>0 && !(m.FIRST>X.C || m.FIRST==0 || m.MAXD>X.C || l.MAXD>X.C || (X.folded && X.C!=X.D.LAST)) -> brk=1 :: else fi; /* nothing shows who removed them */
    if :: conf>0 -> brk=1 :: else fi };
  if :: brk -> printf("  [%d] conflict in (C, W], more than promised, or missing unexplained\n",me); goto doubt :: else fi;
  d_step{ assert(miss<=lost); /* GAP: lost counts the entries that this object was given, that nobody booked yet, and that neither a page nor the server nor the archive holds */
    printf("  [%d] COMMIT fold to %d, to LAST %d, missing %d\n",me,thr,ok,miss);
    x=X.C+1; do :: x<=thr -> if :: pg[x] -> X.cur[x]=pg[x] :: else fi; x++ :: else -> break od; x=0;
    X.A=(ok -> l.EA : X.A+n+miss); X.counted=(ok || known!=UNKNOWN);
    X.C=thr; if :: thr>X.W -> X.W=thr :: else fi; if :: X.W>X.HW -> X.HW=X.W :: else fi; X.found=l.mpos; X.folded=1;
    COPY_FACTS(X.D,l); LET_GO;
    q=1; do :: q<=N -> pg[q]=0; q++ :: else -> break od; q=0; n=0; miss=0; known=0; lost=0; thr=0; ZERO(m) };
#ifdef M_BARE /* the marker is set by a bare command: SETID, or CREATE where there is none */
  CRASHES;
  atomic{ if :: S.there && (S.mk==0 || S.mk==X.num) -> S.mk=X.num; S.mpos=X.C; printf("  [%d] bare command: marker at %d\n",me,X.C) :: else fi };
#endif
  CRASHES; goto start;

shed: skip; /* the marker to C, and a trim below any threshold that the plan may choose */
  d_step{ thr=1 };
  do :: thr<=X.C && thr<l.TOP -> thr++ MAY_STOP_SHORT :: !(thr<=X.C && thr<l.TOP) -> break od;
  if
  :: !X.counted && thr>1 ->
     d_step{ x=1; do :: x<thr -> if :: S.e[x] && X.cur[x]!=S.e[x] -> brk=1 :: else fi; x++ :: else -> break od; x=0; LOOK(m); ok=GOES_ON(l,m) };
     if :: !ok -> goto start :: brk -> goto doubt :: else fi
  :: else
  fi;
  CRASHES;
  LET_GO;
  atomic{ LOOK(m);
    if :: PASSES(l,m) ->
         S.mpos=X.C; printf("  [%d] SCRIPT passes: EA %d LAST %d LEN %d FIRST %d; marker to %d, trim <%d\n",me,m.EA,m.LAST,m.LEN,m.FIRST,X.C,thr);
         x=1; do :: x<=X.C && x<=N -> assert(S.e[x]==0 || x>=thr || X.cur[x]==S.e[x]);                    /* TRIM */
                                      assert(S.e[x]==0 || !X.counted || X.cur[x]==S.e[x]);              /* CUSTODY */
                                      if :: x<thr -> S.e[x]=0 :: else fi; x++ :: else -> break od; x=0; thr=0;
#ifdef M_WITNESS /* not a mistake: shows that a trim after a failover is reached at all */
         assert(!(REPL>1 && m.LEN>1 && X.C>=3));
#endif
#ifdef QUIET
         if :: quiet && X.C==S.LAST && X.A==S.EA -> LOOK(m); assert(m.LEN<=1); goto stop :: else fi
#endif
    :: else -> printf("  [%d] STALE\n",me) fi };
  goto start;

#ifdef M_VERDICT /* the verdict is not durable: only the number of the marker is */
#define FORGET_VERDICT X.pend=0; X.absent=0
#else
#define FORGET_VERDICT skip
#endif
crash: atomic{ ncrash<NCRASH -> ncrash++; rounds=0; FORGET_VERDICT; X.counted=(X.folded && X.C==X.D.LAST); printf("  [%d] CRASH\n",me); LET_GO };
  goto start;
refused: LET_GO;
#ifdef QUIET
  assert(false); /* QUIET: nobody is refused */
#endif
stop: LET_GO }

#define SETA(k) a[k].cur[1]=1; a[k].cur[2]=1; a[k].W=2; a[k].HW=2; a[k].C=2; a[k].A=2; a[k].folded=1; a[k].counted=1; \
  a[k].D.EA=2; a[k].D.LAST=2; a[k].D.LEN=2; a[k].D.FIRST=1; a[k].D.FB=1; a[k].D.REPL=1; a[k].D.TOP=2; a[k].D.TB=1
init { atomic{
 a[0].num=1;
#ifdef PRE
#ifdef GONE
 other=1;
#else
 S.e[1]=1; S.e[2]=1; S.EA=2; S.LAST=2; S.there=1; S.added=BIT(1)|BIT(2); S.mk=1; S.mpos=2;
#endif
 SETA(0);
#if COPIES>1
 SETA(1); a[1].num=1; go2=1;
#endif
#endif
 run Siltd(0);
#if COPIES>1
 run Siltd(1);
#endif
 run World() } }
