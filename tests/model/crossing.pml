/* Crossing the seam (protocol.md §2 and §5; mergeread/crossing.c, cursor_forward.c, cursor_reverse.c, gaps.c): a writer, siltd, removals by others, and one reader that walks
 * over archive and server while everything moves.
 *
 * What is promised, and asserted here:
 *   TRIM    what a trim of ours removes is in the archive (no trim before its commit)
 *   ONCE    the reader's place only moves on, so no entry comes twice
 *   SKIP    no entry is passed that a page or a snapshot of this walk shows, and none at all where nobody else removes anything
 *   END     a walk ends only where nothing is left: forward nothing up to LAST of the last page, backward nothing down to the first id
 *   REFUSED the copy that siltd writes is never taken for an older one
 *   GAP     (GAPS) what is told as missing is what was lost: told once, and as large
 *
 * READER 1 forward, 2 follow (goes on after an end), 3 backward. PG: entries of a page. FX: removals by others (XDEL, XTRIM). NCRASH: crashes of siltd between any two steps
 * (commands in flight still arrive: a trim may happen at any later time). GAPS: the reader starts at the beginning and every fold reaches LAST0.
 * tests/model/README.md lists the mistakes (-D) and what each shows. */
#ifndef N
#define N 3
#endif
#ifndef READER
#define READER 1
#endif
#ifndef PG
#define PG 2
#endif
#ifndef FX
#define FX 0
#endif
#ifndef NCRASH
#define NCRASH 1
#endif
#define BIT(i) (1<<(i))
#define UPTO(i) ((1<<((i)+1))-1)

byte live=0, arch=0, last=0, maxd=0, W=0, fx=0, ncrash=0; /* sets of ids are bits */
byte mpos=0;                                              /* the marker */
#ifdef M_OLD_COPY /* the reader opens an older copy of the directory, and does not look at the marker */
byte oldarch=0, oldW=0; bit copied=0;
#define R_ARCH oldarch
#define R_W oldW
#define OLD_COPY
#else
#ifdef OLD_COPY
byte oldarch=0, oldW=0; bit copied=0;
#define R_ARCH oldarch
#define R_W oldW
#else
#define R_ARCH arch
#define R_W W
#endif
#endif

proctype Writer(){ do :: atomic{ last<N -> last++; live=live|BIT(last); printf("EV XADD %d\n",last) } :: atomic{ last==N -> break } od }

proctype Others(){ byte i;
 do
 :: atomic{ fx<FX -> fx++;
    if
    :: select(i:1 .. N); if :: live & BIT(i) -> live=live & ~BIT(i); if :: i>maxd -> maxd=i :: else fi; printf("EV others XDEL %d\n",i) :: else fi
    :: select(i:2 .. (N+1)); live=live & ~UPTO(i-1); printf("EV others trim <%d\n",i)
    fi; i=0 }
#ifdef OLD_COPY
 :: atomic{ !copied -> copied=1; oldarch=arch; oldW=W; printf("EV copy of the archive, W %d\n",W) }
#endif
 od }

proctype Siltd(){ byte l0=0, p=0, t=0, got=0;
start:
 do
 :: d_step{ l0=last; got=live & UPTO(l0) & ~UPTO(W); printf("  siltd fetches to %d\n",l0) };
#ifdef M_TRIM_FIRST /* trimmed when fetched, before the commit */
    d_step{ live=live & ~(UPTO(l0)) | (live & BIT(l0)); printf("  our trim <%d, not committed yet\n",l0) };
#endif
    if :: goto crash :: skip fi;
    atomic{
#ifdef GAPS
      p=l0;
#else
      p=W; do :: p<l0 -> p++ :: break od; /* a fold to any P */
#endif
      if :: p<W -> p=W :: else fi;
      arch=arch | (got & UPTO(p)); W=p; got=0; l0=0; p=0; printf("  siltd commits W %d\n",W) };
    if :: goto crash :: skip fi;
    d_step{ mpos=W; printf("  the script: marker to %d\n",W) }
#ifdef M_MAXLEN /* trimmed by count: all but the newest, whichever that is when the command arrives */
 :: d_step{ W>0 -> t=last; do :: t>0 && !(live & BIT(t)) -> t-- :: else -> break od; if :: t>0 -> t-- :: else fi;
      assert((live & UPTO(t) & ~arch)==0); live=live & ~UPTO(t); t=0; printf("  our XTRIM MAXLEN 1\n") } /* TRIM */
#else
 :: atomic{ mpos>0 -> t=1; do :: t<mpos && t+1<last -> t++ :: break od;
      assert((live & UPTO(t) & ~arch)==0); live=live & ~UPTO(t); printf("  our trim <%d arrives\n",t+1); t=0 } /* TRIM: any threshold, at any later time */
#endif
 od;
crash: skip; d_step{ ncrash<NCRASH -> ncrash++; l0=0; got=0; p=0; printf("  siltd CRASHES\n") }; goto start }

#ifdef GAPS
#define GIVEN(x) given=given|BIT(x); acc++
#else
#define GIVEN(x) skip
#endif
/* The place goes to x, which is given; hist: all that this walk can know to lie on the way. */
inline GIVE_UP(x,hist) { assert(x>pos); assert(FX>0 || x==pos+1); assert(!((hist) & ~UPTO(pos) & UPTO(x-1))); printf("    reader gives %d\n",x); pos=x; GIVEN(x) }
inline GIVE_DOWN(x,hist) { assert(x<pos); assert(FX>0 || pos>top || x==pos-1); assert(!((hist) & UPTO(pos-1) & ~UPTO(x))); printf("    reader gives %d\n",x); pos=x }

/* The marker stands above the snapshot's W: this is an older copy of the archive. */
#if defined(M_OLD_COPY) || defined(M_SNAPSHOT_FIRST) /* with the snapshot first, the newest copy would be taken for an older one; and without the marker: */
#define OLDER(w) false
#else
#define OLDER(w) mp>w
#endif
#ifdef OLD_COPY
#define NOT_REFUSED skip
#else
#define NOT_REFUSED assert(false)
#endif
#if READER<3
proctype Up(){ byte pos=0, start=0, i=0, n=0, plast=0, w2=0, page=0, seen=0, mp=0; bit whole=0, pfull=0;
#ifdef GAPS
 byte acc=0, given=0, base=0, base0=0, told=0, from=0, k=0; bit hasbase=0;
#else
 select(start:0 .. (N-1)); pos=start; start=0;
#endif
#ifdef OLD_COPY
 copied;
#endif
lookup:
 do
 :: atomic{ pos<R_W ->            /* segments first, each step with a snapshot of its own */
      i=pos+1; do :: i<=R_W && !(R_ARCH & BIT(i)) -> i++ :: else -> break od;
      if :: i<=R_W -> GIVE_UP(i,R_ARCH) :: else -> pos=R_W fi; i=0 }
 :: else ->
#ifdef M_SNAPSHOT_FIRST /* no second snapshot: the page is merged with what was looked at before it */
    d_step{ w2=R_W; seen=R_ARCH };
#endif
    d_step{                       /* the page, with its look */
#ifdef GAPS
      from=pos;
#endif
      i=pos+1; n=0; page=0; do :: i<=N && n<PG -> if :: live & BIT(i) -> page=page|BIT(i); n++ :: else fi; i++ :: else -> break od; i=0; pfull=(n==PG); n=0;
      plast=last; mp=mpos;
      i=1; do :: i<=N && !(live & BIT(i)) -> i++ :: else -> break od;           /* FIRST */
#if defined(M_WHOLE_DELETED) /* the short way without looking at MAXDEL */
      whole=(i<=N && pos>=i);
#elif defined(M_WHOLE_FIRST) /* the short way without looking at FIRST */
      whole=(i<=N && pos>=maxd);
#else
      whole=(i<=N && pos>=i && pos>=maxd);
#endif
      i=0; printf("    reader at %d: page %d, LAST %d\n",pos,page,plast) };
#ifndef M_SNAPSHOT_FIRST
    d_step{ w2=R_W; seen=R_ARCH; printf("    reader: snapshot W %d\n",w2) };      /* after it, the snapshot */
#endif
    if :: OLDER(w2) -> NOT_REFUSED; goto out :: else fi;                           /* an older copy: stop */
    d_step{ mp=0; whole=whole && plast>=w2;
      i=pos+1;
      if
      :: whole -> do :: i<=N -> if :: page & BIT(i) -> GIVE_UP(i,page) :: else fi; i++ :: else -> break od
      :: else  -> do :: i<=N -> if :: (i<=w2 && (seen & BIT(i))) || (i>w2 && (page & BIT(i))) -> GIVE_UP(i,((seen & UPTO(w2))|(page & ~UPTO(w2)))) :: else fi; i++ :: else -> break od
      fi; i=0;
      if :: (!whole || !pfull) && pos<w2 -> assert(!(seen & ~UPTO(pos) & UPTO(w2))); pos=w2 :: else fi;
#ifdef GAPS
      if :: w2>=from && (!whole || !pfull || pos>w2) -> /* silt_cursor_rebase; A of a fold that reached LAST0 is W, for ids are consecutive here */
            k=0; i=1; do :: i<=N -> if :: i>w2 && (given & BIT(i)) -> k++ :: else fi; i++ :: else -> break od; i=0; /* given out of this page, above W2: not of the sum yet */
            if :: hasbase && w2>acc-k -> told=told+(w2-(acc-k)); acc=w2+k :: else fi;
            if :: !hasbase -> base0=w2; hasbase=1; acc=w2+k; told=0; given=given & ~UPTO(w2) :: else fi; base=w2; k=0
         :: else fi;
      if :: !pfull && plast>=base ->
            i=1; do :: i<=plast -> if :: i>base0 && !(given & BIT(i)) -> k++ :: else fi; i++ :: else -> break od; i=0;
#ifdef M_BASE /* EA - A less what the page holds above W2, taken literally */
            n=0; i=1; do :: i<=N -> if :: i>w2 && (page & BIT(i)) -> n++ :: else fi; i++ :: else -> break od; i=0;
            if :: plast>w2 -> told=told+(plast-w2-n) :: else fi; n=0;
#else
            if :: plast>acc -> told=told+(plast-acc) :: else fi;
#endif
            acc=plast; base=plast; printf("    reader: missing %d in all\n",told);
            assert(told==k); k=0
         :: else fi;
#endif
      if :: !pfull -> if :: plast>pos -> pos=plast :: else fi;
                     assert(pos>=plast); assert(!((seen & UPTO(w2)) & ~UPTO(pos)))   /* END */
         :: else fi;
      page=0; seen=0; w2=0 };
#ifdef M_END_FULL /* a page that is full is taken for the end too */
    assert(!(live & ~UPTO(pos) & UPTO(plast))); goto out;
#endif
    if :: !pfull && READER==1 -> goto out
       :: !pfull && READER==2 && pos==N -> goto out
       :: else fi;
    d_step{ pfull=0; whole=0; plast=0 }
 od;
out: skip }
#else
proctype Down(){ byte pos=N+1, start=0, top=0, i=0, n=0, low=0, w=0, w1=0, page=0, seen=0, mp=0; bit pfull=0, begun=0;
 select(start:2 .. (N+1)); pos=start; start=0;
#ifdef OLD_COPY
 copied;
#endif
 d_step{ w1=R_W };
lookup:
 do
 :: w1>=pos-1 -> goto segments             /* the archive reaches up to the place */
 :: else ->
    d_step{ if :: !begun -> begun=1; top=last :: else fi;          /* what is appended after the walk began need not be met */
      i=pos; n=0; page=0; low=0; mp=mpos; do :: i>w1+1 && n<PG -> i--; if :: live & BIT(i) -> page=page|BIT(i); n++; low=i :: else fi :: else -> break od; i=0; pfull=(n==PG); n=0;
      printf("    reader: page below %d = %d\n",pos,page) };
#ifdef M_SNAPSHOT_FIRST
    d_step{ w=w1; seen=R_ARCH };
#else
    d_step{ w=R_W; seen=R_ARCH; printf("    reader: snapshot W %d\n",w) };
#endif
    if :: OLDER(w) -> NOT_REFUSED; goto out :: else fi;
    mp=0;
    if
    :: w>=pos-1 -> d_step{ w1=w; page=0; seen=0; pfull=0; low=0; w=0 }      /* drop the page */
    :: else -> d_step{ w1=w; i=pos; do :: i>w+1 && i>1 -> i--; if :: page & BIT(i) -> GIVE_DOWN(i,(page|(seen & UPTO(top)))) :: else fi :: else -> break od; i=0;
         if :: pfull && low>w -> skip                                            /* again, below it */
            :: else ->
#ifdef M_SHORT_PAGE /* a page that is not full is taken for the end */
               if :: !pfull -> assert(!((arch|live) & UPTO(pos-1) & UPTO(top))) :: else fi;
#endif
               assert(!(seen & UPTO(pos-1) & ~UPTO(w) & UPTO(top))); assert(FX>0 || pos-1<=w || top<=w); if :: w+1<pos -> pos=w+1 :: else fi
         fi; page=0; seen=0; pfull=0; low=0; w=0 }
    fi
 od;
segments: /* each step with a snapshot of its own */
 do
 :: atomic{ i=pos; do :: i>1 -> i--; if :: R_ARCH & BIT(i) -> break :: else fi :: else -> i=0; break od;
      if :: i>0 -> GIVE_DOWN(i,(R_ARCH & UPTO(top))); i=0
         :: else -> assert(!(arch & UPTO(pos-1) & UPTO(top))); goto out fi }     /* END */
 od;
out: skip }
#endif

init { atomic{ run Writer(); run Siltd();
#if FX>0 || defined(OLD_COPY)
 run Others();
#endif
#if READER<3
 run Up()
#else
 run Down()
#endif
 } }
