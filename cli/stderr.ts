/** Prints a message on standard error. Standard output is for results. */
export function printStderr(line: string): void {
  process.stderr.write(`${line}\n`)
}
