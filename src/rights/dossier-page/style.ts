/** The style of a dossier's page, for wide and narrow windows, light and dark themes, and paper. */
export const pageStyle = `:root{color-scheme:light dark;--ink:#1b1b1d;--quiet:#56565c;--paper:#fff;--ground:#f3f3f1;--line:#d4d4d8;--link:#0b4f9c;--yes:#0a6b3d;--no:#8a1c1c}
@media (prefers-color-scheme:dark){:root{--ink:#f1f1f2;--quiet:#b6b6bd;--paper:#202124;--ground:#151618;--line:#44454b;--link:#9fc9ff;--yes:#7ed3a4;--no:#f2a3a3}}
*{box-sizing:border-box}
html{scroll-padding-top:1rem}
body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Open Sans",sans-serif;overflow-wrap:anywhere}
header,section,footer{max-width:60rem;margin:0 auto 1.25rem;padding:1.5rem 1.25rem;background:var(--paper);border:1px solid var(--line);border-radius:.5rem}
header{margin-top:1.25rem}
footer{color:var(--quiet)}
footer p{margin:0}
.holder{margin:0;font-weight:600;color:var(--quiet)}
h1{font-size:1.75rem;line-height:1.25;margin:.125rem 0 .5rem}
h2{font-size:1.25rem;line-height:1.35;margin:0 0 .25rem}
h3,h4{font-size:1rem;line-height:1.4;margin:0 0 .5rem}
h4{font-weight:600}
.group{font-size:1.0625rem;margin:1.25rem 0 .75rem}
.lead{font-size:1.0625rem;margin:0 0 1rem}
.about{color:var(--quiet);margin:0 0 1rem}
.none{color:var(--quiet);margin:0}
.small{color:var(--quiet);font-size:.8125rem;margin:1rem 0 0}
dl{margin:0}
dl>div{display:grid;grid-template-columns:13rem minmax(0,1fr);gap:0 1rem;padding:.375rem 0;border-top:1px solid var(--line)}
dt{color:var(--quiet)}
dd{margin:0;white-space:pre-wrap}
nav{margin-top:1.25rem}
nav ul{display:flex;flex-wrap:wrap;gap:.125rem 1.25rem;margin:0;padding:0;list-style:none}
nav a{display:inline-block;padding:.25rem 0}
a{color:var(--link)}
table{width:100%;border-collapse:collapse}
th{text-align:left;font-weight:400;color:var(--quiet);padding:.375rem 1rem .375rem 0;vertical-align:bottom}
td{padding:.5rem 1rem .5rem 0;border-top:1px solid var(--line);vertical-align:top;white-space:pre-wrap}
th:last-child,td:last-child{padding-right:0}
article{border-top:1px solid var(--line);padding:1rem 0}
article:last-child{padding-bottom:0}
article dl>div{border:0;padding:.125rem 0}
blockquote{margin:0;padding:0 0 0 1rem;border-left:.25rem solid var(--line);white-space:pre-wrap}
.value ul,.value dl{margin:0;padding:0;list-style:none}
.value li+li{margin-top:.25rem}
.value dl>div{display:block;border:0;padding:0}
.value dl dt,.value dl dd{display:inline}
.value dl dt::after{content:": "}
.unset{color:var(--quiet)}
.yes{color:var(--yes);font-weight:600}
.no{color:var(--no);font-weight:600}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
@media (max-width:40rem){
header,section,footer{margin:0 0 .75rem;border-left:0;border-right:0;border-radius:0;padding:1.25rem 1rem}
dl>div{display:block}
nav ul{display:block}
nav a{padding:.375rem 0}
thead{display:none}
table,tbody,tr,td{display:block}
tr{border-top:1px solid var(--line);padding:.5rem 0}
td{border:0;padding:.125rem 0}
td[data-label]::before{content:attr(data-label) ": ";color:var(--quiet)}
}
@page{size:A4;margin:18mm}
@media print{
:root{--ink:#000;--quiet:#444;--paper:#fff;--ground:#fff;--line:#bbb;--link:#000;--yes:#000;--no:#000}
body{font-size:10pt}
header,section,footer{border:0;border-top:1pt solid #000;border-radius:0;margin:0;padding:10pt 0;max-width:none}
nav{display:none}
h2,h3,h4,.about{break-after:avoid}
article,tr,dl>div{break-inside:avoid}
a{text-decoration:none}
}
`
