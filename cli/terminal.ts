/** Prints a message on standard error. Standard output is for results. */
export function printStderr(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** A line without characters that move the cursor or change the direction of the text. Stored values can have any. */
export const visible = (line: string): string =>
  line.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, character => `\\u{${character.codePointAt(0)!.toString(16)}}`)
