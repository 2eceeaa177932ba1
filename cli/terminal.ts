import type { Detail } from '../client/index.ts'

/** Prints a message on standard error. Standard output is for results. */
export function printStderr(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** The warnings of a response, one per line. */
export const warningLines = (warnings: readonly Detail[] = []): string[] =>
  warnings.map(({ path, message }) => `Warning: ${path} ${message}`)

export function printWarnings(warnings?: readonly Detail[]): void {
  for (const line of warningLines(warnings)) printStderr(visible(line))
}

/**
 * Escapes the characters of a line that move the cursor or change the direction of the text. Stored values can contain
 * them.
 */
export const visible = (line: string): string =>
  line.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
