/** SQL of a time as JSON shows it: RFC 3339 in UTC with milliseconds. */
export const timeText = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL of a time that a client gave, as `utcTime` prints it: with microseconds if it has them. */
export const exactTimeText = (column: string): string =>
  `replace(to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '000Z', 'Z')`

// PostgreSQL's regular expressions for the texts that formats.ts accepts. A stored text may be anything, so it must be checked before
// it is cast.

/** A date for which `isDate` is true. It has no lookahead, with which PostgreSQL takes twice the time. */
export const datePattern =
  '^(([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])' +
  '|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))' +
  '|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)$'

/** The time of a date and time for which `isDateTime` is true, from its T on. */
export const timePattern =
  '^[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'
