/** SQL of a time as JSON shows it: RFC 3339 in UTC with milliseconds. */
export const timeText = (column: string): string =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

/** SQL of a time that a client gave, as `utcTime` prints it: with microseconds if it has them. */
export const exactTimeText = (column: string): string =>
  `replace(to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), '000Z', 'Z')`
