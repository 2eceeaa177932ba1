/** SQL of a time as in JSON: RFC 3339 in UTC with milliseconds. */
export const timeText = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL of a time from a client, as `utcTime` prints it: with microseconds if it has any. */
export const exactTimeText = (column: string): string =>
  `replace(to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '000Z', 'Z')`

// PostgreSQL's regular expressions for the texts that formats.ts accepts. Stored texts are unrestricted, so they must
// be checked before a cast.

/** A date for which `isDate` is true. It has no lookahead, because that doubles PostgreSQL's time. */
export const datePattern =
  '^(([0-9]{3}[1-9]|[0-9]{2}[1-9]0|[0-9][1-9]00|[1-9]000)-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])' +
  '|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))' +
  '|([0-9]{2}(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29)$'

/** The time of day, from its T on, of a text for which `isDateTime` is true. */
export const timePattern =
  '^[Tt]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$'
