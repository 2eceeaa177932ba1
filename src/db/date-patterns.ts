// PostgreSQL's regular expressions for the texts that formats.ts accepts. A stored text may be anything, so it must be checked before
// it is cast.

/** A date for which `isDate` is true. It has no lookahead, with which PostgreSQL takes twice the time. */
export const datePattern =
  '^(([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])' +
  '|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))' +
  '|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)$'

/** The time of a date and time for which `isDateTime` is true, from its T on. */
export const timePattern =
  '^[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]+)?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'
