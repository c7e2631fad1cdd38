// The code books of the IQ formats. Every book lists its entries in ascending order, when an
// entry is read as a number whose digits are its values (first value lowest, as the level's
// index). So a book is its first number and the steps between neighbours, written here one
// character a step: the raw books would take ten times the lines.
#include "quant/iq_grids.h"

#include <string_view>

namespace sluice {
namespace {

// A step of 1..33 is one character from ']' on; each '~' before it adds 33 more.
constexpr char kOne = ']';
constexpr char kThirtyThreeMore = '~';

constexpr size_t Entries(std::string_view steps) {
  size_t entries = 0;
  for (const char c : steps) entries += c != kThirtyThreeMore;
  return entries;
}

template <size_t kEntries, size_t kValues, size_t kLevels>
consteval Grid<kEntries, kValues> Expand(std::string_view steps, const int8_t (&levels)[kLevels]) {
  Grid<kEntries, kValues> grid{};
  size_t entry = 0, number = 0;  // the first step leads from -1: hence no + 1 before it is used
  for (const char c : steps) {
    if (c == kThirtyThreeMore) {
      number += kThirtyThreeMore - kOne;
      continue;
    }
    number += static_cast<size_t>(c - kOne);
    size_t digits = number++;
    for (size_t j = 0; j < kValues; ++j, digits /= kLevels) {
      grid[entry][j] = levels[digits % kLevels];
    }
    ++entry;
  }
  return grid;
}

constexpr int8_t kLevelsTernary[] = {-1, 0, 1};
constexpr int8_t kLevelsIQ2[] = {8, 25, 43};
constexpr int8_t kLevelsIQ3_XXS[] = {4, 12, 20, 28, 36, 44, 52, 62};
constexpr int8_t kLevelsIQ3_S[] = {1, 3, 5, 7, 9, 11, 13, 15};

constexpr std::string_view kStepsIQ1 =
    "]^^^^^_a^`^ab^^da^`^aa^`^`]b^^^]ab`^`^`^^^]cb^^da^`^aa^`^abba`^^`^^__^^`^g^^dbbb``]kbbb^]]d^^d"
    "^``]]^]]^^^^^^^e_^^^^]]^j`h^b^^^_]`^bb^`g^`^aa^`^ab`da^`^aa^`^ab^`a]bd]_b^`h^^^ba^`^aa^`^abb__"
    "a^^^^aa^`^f]^`a]b^b`^`^]_h^^a_b^^^^^^^`^`b`]]]]]]^^`dd^b^l^^daa^`^^^`^db^^db`^a]^]_`a_]]^^^]]^"
    "`^^b`^_]^]]^^]_`^`^^]]^^^^^^^^]]a]]]]^]^^]]^^^]]^^]]^]]^]]^^b^]]d]]^^``^]]^^^_]]]_^]^]]b__^d`h"
    "`db^^^^`^^]]^^^bb^fj^^`^_c]]^`^]]^]]``d_]^^``^ecc^c^^^^^^``^bb`_f^`^aa^^^^abb__a^`^aa^^^^ab^`b"
    "c]`b^^^^]]daa^bba^^_a^`^ab`^bba^^_a^`^ad^^bd]]^`^^^bdb^`__hbbb^`^`^]_`^^f^_]^^^^^^ba^abbbba]ba"
    "^`df^`^aa^`^ab^fa^`^f^`^d_^`bf^`^b^^^baa^a]a^`^f^`^ab`^ba^`^aa^`^ab`dh`^^^^^^l`_``]^^^`^]]^^`^"
    "b^^^^]]^]a^^^^^`^^a]]gb^^dbf^```eafbh_eb^^^^]]a]^^^^`^^^^a]b_]^`^^]]^^``^^]]^^]^]]]]_^]]^`]]^`"
    "^]]^]a^^^__a]^^^^`^^^^_]]^]^`^^`_``]b^^db_`aca^`^`^^^bb^^^bb_]_]_]^`^^```^]]]]^^^^]_b^`^]]`^^^"
    "ll^^b^^``jfb^]]^`^`^^`^`^`^]]^b^d^b^_]`^b^]]^^]]]]^`]]^^^]]^^]]]]]]]]^^]]^`^b^]]^^``^`b^`^^d^`"
    "^^]]^`^ea^^_]`e]b^]]]]__^^^^]]^]]]^]]]]]^]]]]^^b^^^]]^_^]`^]]]]^^]]]]]^]^^]]^^]]]]]]]^]]]]]]]]"
    "]]^]]]]]^^]_]]]^]]]]_^]]^^]]]^]]_^]^]^]]]]]]]__]]]]]]]]]]]]]^^]_`^]]]]^_`_^]]]a]]^^`^`ca^^^^]]"
    "]]^^]]ca^^^^`b_]^`^^]]^bb^]]^^]]]]]]]]^^]]^____^]]]]bd_c`]`]^b^]__]]]`^^^^c_^]]^^hd^^bdb`]]^^^"
    "^^_idb^^^`^b]_^b___]^b]_`a_^b`^h`^g]`d]]_ib`dk]^]_^`^^^^^^^^]]^]]^^d]_^^]]]]^^^`b^^^_]^j]]^^]^"
    "]]^_^]]^c^]^_]^]_^]]aabaa]]^`^^^^]]]^]`^_^^``^]]^_^_k^bbf^`^bbbada^b`b^^^^]_]]`^]]^^``_]aab^]_"
    "h`]i^`^`^^`]_cc_^b`^`^f^`^aa]^^^ba^`^aa^`^ab^^^bb^`^^^]]]a^^b_a^^ba^`^aa^`^g^`ba^`^aa^`^i`h^c_"
    "`^^`j`hb`^`b^^]_^`^]]^]a]]^^^^^^^^^dj`^bb^`]]`_]^`_abc`b^`^aa^`^^_b^`b_^^`^aa^`^a]a^^db^^^^^^`"
    "^^ff^ba^`^aa^`^ab^^i^`^aa^`^ab`]]bb`^b^^d]ab^^^bb^^^^`^^^^^^^`a]^]]^`^d^b^^`^^^bb^`bd^^^^^^d^b"
    "d^g_^^``^d`d^^]]]]^]]^d^b]]^`b^`^^]]^]]^___]^^]]^^]]]]]]]]^^]]^__^`]]]]^]]^^^^^^b`_^a^b^]_]^]^"
    "b^a]`]_]]d^^bf^bb``^^]_`]eb`^bd^^^^^^^]]^^`^^^^^^]]^`^]_^^b^^`^`deed^^^`^`hb^]]i^`^aa^`^ab^^^g"
    "^`^aa^`^a__^^^]k^__^^^^fa^_^i`^]c``^ab`^ba^`^aa^`^mbb^b_]^^^_]]]bx^^^^^d^`^b^]]^b`^^]]^`^^lb`_"
    "^_d^__^]]_^h``]^_^^`^`^f^`^g^^^g^`^aa^`^ad`__bd``^`^gai^`^f^`^g^^i^`^aa^`^";

constexpr std::string_view kStepsIQ2_XXS =
    "]^^^^^^b^`^^^bb`^b^bhd^b`jzhh^n~_v^bf^b^`hf^bhb^`hjp^ft^nznb`^bh`^b^rtt~sf~~`^bfdnhb`jbhndf~kf"
    "~mbh`hp~e|~]j~~^^bnxv`~~^~i~g^brld^~md~k^~~j^bnj~cxp~~zth~k~~~w~o^bb`^bbd`f^bnnxd`tdtdfzbh~_lr"
    "f~w~~l^bn`~m~e`f~s|nb`b^~_btv~i~~`~~j^t~~d~a~efb|~w~w~~hbntz~c~sz~_`~~p^~i~~~~^~~~~~~l^bpxxhh~"
    "{~~b^b`jn~_|~]rpn~a~~l~~r~~dbhb~ir~c~u~mpf~~r~~~~~k~g~~~~j~]rz~~d~~z~~~~~~~}~k";

constexpr std::string_view kStepsIQ2_XS =
    "]^^^^^^^^^^^^`^^^^^^^`^b^^^`^`^f^^^^^^^^^^b^^^`^bb`^bn^^^`^bf^b`jdp^^^^^^^`^b^^^`^^`f^bn^^^`^b"
    "f^bfdx^bj`^xt^^^^^^b`b^bbhnd^^bnxbpnb~g`f^^^^^^^`^b^^^`^bd^^bn^^^`^bf^bnh^j^^`nn~_^^^`^bf^`^hb"
    "x^bn~qhr~k^b^lhpr`~i~~^~e^^^^^^^bf^bnnf^bnbl|p~]t`^bl^~qxf|hl~w`b^frpj~uhth~a`^p^^^^^^^`^b^^^^"
    "^^b`b^bn^^^`^bf^bn`ld^b^j^~q^^^`^`^f^bnhl^bhb~gfdrb~i^bn`dd~]fpbl|~~h^^^`^bb`^bnx^b`j^~oz~m^^b"
    "fdnfndb~kb~c|rdhld~]xf^~~~gt^bnhdhp^~~~_jzlj~~fn`~g~~r~o~m~{~]d~]^^^`^bd^^bn^r^^^^`nfb~an~_^lb"
    "`^b^^jnlpz~ip~axblrf^rd~~z~]bdf`^bnjltpx~~dpp`vbb~{~a^~g~~t~c~a~w|~_^`^fd~i~ib~]`^`pxn~_~c~~~~"
    "hppf^`~kbb~q^~i^~al";

constexpr std::string_view kStepsIQ2_S =
    "]^^^^^^^^^^^^`^^^^^^^`^^^^^^^`^b``^^^^^^^^`^b^^^`^^^^`^`^b^^b^b^^^`^bd^^^^^`j```dd^^^^^^^`^^^^"
    "^^^^^^^^^^^b^^^^`^`^b^^^^^^^^^`^`^^^^^^^`^b^^^`^bf^^^^`j`^`^bf^bn^^^`^^^^``^^^^^^^^`^b`dj^^b^^"
    "^`d`^`^bfdnf^d`^f~]h^^^^^^^`^^`^^^`^^^^^^^`^^``^`^b^^^^^^^^^^^^`^^^^^^^`^b^^^`^l^`^`b^b`b^l^bn"
    "^^^`^^^^`^`^^^^^^^`^b^^^`^bf^^^^^^^`^b^^^`^bf^bn`^`^bf^bnv^^^^^`^`d^^^`^bf^t^^^`^bf^blrfbnj~c^"
    "^^`^^^^``^^b^^dbd`j^^b^^bd^^b^bf^bndh`^`bt^l`^^^^`^`^b^^^`^bf^bn`^`^bf^bj`x^bnl~a`b^l^bvn^^b~u"
    "rhxh^p^^^^^^^^^^^`^^^^^^^^^^^b^b`^`^b^^^`^^^^^^b^^^^^^^`^b^^^`^bf^b^^^bb`^`^bf^t^^^^^^^^^^^^`^"
    "^^^^^^`^b^^^`^bf^^^^^^^`^b^^^`^bd^^bn^^^`^bf^bnrb^`^^^^`^b^^^`^bhbn^^^`^bf^bnjj^bn~q^^^`^^^^^^"
    "^`^^^^^^^`^b^^^`^l^^^^^^^`^b^^^`^bf^bn`^`^bf^bl^x^^^^^^^`^b^^^`^bf^bn^^^`^bf^bnx^bj`~q^^^`^bf^"
    "bdfx^bn~ql~ep`^^`^^^`^b`^`^bhbn^^^`^bf^bnljbnj|d`^`^bf^bnx^bndljl~}l^b~cphv~~n~gd^^^`^`^`b^b^^"
    "^`d`b^l^`^^^^`^b^^^`^l^bl^``^^l^b~i^^^^^^^`d^^^`^bf^bn^^^`^bf^bndp^bl^~q`b^l^b~ad^tr~or^hnd^`^"
    "^^^bb^^^`^bf^bn`b^l^bd~a^bn~m`^^^`^bf^bnjj^bn~e`d|l~]^bj`~o^~]`~~~cn```db^^b~abxr~]bh`^z`^l`^b"
    "n~]jbl~~~_~ol~m~ipx^f^`~_p";

constexpr std::string_view kStepsIQ3_XXS =
    "]^^a^`]^ceu^`^a^c`_^cghd^^ac^c^`fbj`b]^g~^opagh^`bol~nsp`^qjl^a^c^a^^g]t^cc^~j^a^cc~]b^jeilg`~"
    "^~c`noh~~gj|^c^a^`_e{^^_^ccw`]d^cb]^i]ipc`~g`}jtpfw~~_^gsxc^c^qiab^jeg^w^aiqlkn~xkobbhw{nq~cqp"
    "gj^h`~~gpk]lbmz{~`g}jq~~g_^j~mssdbls{j|d~dyg`~^ds~~i~gj~ml^jy|z~`~_b~~`}~`~l~cj~m^^]nl~gf~ewar"
    "ijq}l{^n~~^";

constexpr std::string_view kStepsIQ3_S =
    "]]]_^]]]^^^]`ba^_^^^a^c__]]]^`]`__`^`ci`ab]`^]___`_`b_^^^i_db`_^c^_b`^i^`_g`^_bb_bkf^h^`ab`^ka"
    "g_^jmkc^^h^`ai`p]]^`]^^^]^c_^j^_eb]^_^`ac_bc^jb^f_^]`bb_f_fc__]_bb]`ambg^a^i^c`^`qc_bc^k~b`_i^"
    "w^a^ch`mbd]^^^]^^^_^`]^c^^_^i]_^_^b_`__`_bct__f^ac^f`f_`^_`e^a^cbjgbe_c_`u_caei]gid^afx`p`i^ga"
    "vc^^^_c^^a^_^fbd^^ca^ilf`^fbf^huc`a^`]e^`bjdba`cmb`ic^gaffioo|^i^g~^`bb`__cclfa^^cbabb`p^aa`fa"
    "k_bha^a^c`~^^ng]uh^f}umptaggbub`bj`__hba^^ace|befabisa]kiahbb_hfh~_ho^~r|^j~r^^h^qllcyrnbgabdh"
    "ak~pjkj_upqw~d^~p`_e^h^hblcgk^x_`b_cmut_jr`bat~el|s~b";

}  // namespace

constinit const Grid<2048, 8> kGridIQ1 = Expand<2048, 8>(kStepsIQ1, kLevelsTernary);
constinit const Grid<256, 8> kGridIQ2_XXS = Expand<256, 8>(kStepsIQ2_XXS, kLevelsIQ2);
constinit const Grid<512, 8> kGridIQ2_XS = Expand<512, 8>(kStepsIQ2_XS, kLevelsIQ2);
constinit const Grid<1024, 8> kGridIQ2_S = Expand<1024, 8>(kStepsIQ2_S, kLevelsIQ2);
constinit const Grid<256, 4> kGridIQ3_XXS = Expand<256, 4>(kStepsIQ3_XXS, kLevelsIQ3_XXS);
constinit const Grid<512, 4> kGridIQ3_S = Expand<512, 4>(kStepsIQ3_S, kLevelsIQ3_S);

static_assert(Entries(kStepsIQ1) == kGridIQ1.size());
static_assert(Entries(kStepsIQ2_XXS) == kGridIQ2_XXS.size());
static_assert(Entries(kStepsIQ2_XS) == kGridIQ2_XS.size());
static_assert(Entries(kStepsIQ2_S) == kGridIQ2_S.size());
static_assert(Entries(kStepsIQ3_XXS) == kGridIQ3_XXS.size());
static_assert(Entries(kStepsIQ3_S) == kGridIQ3_S.size());

}  // namespace sluice
