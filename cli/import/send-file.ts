import { type CsvHead, textOf } from '../../transfer/csv.ts'
import { doneBytesOf, type ImportJob, type ImportState, importAll, startState } from '../../transfer/import.ts'
import type { ImportItem } from '../../transfer/item.ts'
import { refusedOf } from '../../transfer/refused.ts'
import { Retries } from '../../transfer/retry.ts'
import type { Result } from '../command.ts'
import { errorMessage } from '../error-message.ts'
import { formatCount, formatDuration, type QuietOptions, startProgress } from '../progress.ts'
import { handleInterrupt } from '../signal-handling.ts'
import type { Input } from './input.ts'
import type { RejectsFile } from './rejects-file.ts'

/** The outcome of sending a file. With `hasRefused`, the file has lines that an earlier command refused. */
export type Outcome = { state: ImportState; hasRefused: boolean; stopped: boolean; error: Error | null }

/** The objects that `sendFile` needs from its command. `retry` repeats work that failed for a temporary reason. */
export type Sending = {
  signal: AbortSignal
  isStopped: () => boolean
  print: (message: string) => void
  retry: <T>(work: () => Promise<T>) => Promise<T>
}

type Sent = Pick<ImportJob, 'open' | 'isStreamed' | 'isRepeatable' | 'done'> & { items: AsyncIterable<ImportItem[]> }

/**
 * Sends the lines of a file after `skipLines`, shows the progress, retries after a failure, and writes refused lines to
 * their file.
 */
export async function sendFile(
  { input, refused, options }: { input: Input; refused: RejectsFile; options: QuietOptions & { skipLines: number } },
  prepare: (sending: Sending) => Promise<Sent> | Sent,
): Promise<Outcome> {
  const state = startState(options.skipLines)
  const reading = () => ({
    count: state.received,
    fraction: input.totalBytes === null ? null : doneBytesOf(input.readBytes(), state) / Math.max(1, input.totalBytes),
    refused: state.failed,
  })
  const { print, end } = startProgress('lines', reading, options)
  const interrupt = handleInterrupt(() =>
    print('Stopping after the lines already sent. Press Ctrl-C again to stop immediately.'),
  )
  const retries = new Retries()
  const wait = (error: unknown) =>
    retries.wait(error, state.received, interrupt, pauseMs =>
      print(`${errorMessage(error)} Continuing after line ${state.line} in ${(pauseMs / 1_000).toFixed(1)} s.`),
    )
  async function retry<T>(work: () => Promise<T>): Promise<T> {
    for (;;)
      try {
        return await work()
      } catch (error) {
        await wait(error)
      }
  }
  let hasRefused = false
  let error: Error | null = null
  try {
    const { signal } = interrupt
    const { items, done, ...job } = await prepare({ signal, isStopped: () => interrupt.isRequested, print, retry })
    await importAll({
      ...job,
      items: skipping(items, options.skipLines),
      stop: interrupt,
      state,
      async done(items) {
        hasRefused ||= items.some(({ isRefused }) => isRefused)
        await done(items)
        await refused.write(refusedOf(items))
      },
      async failed(error, isDoubling) {
        if (isDoubling) throw new Error(`${errorMessage(error)} ${doublingHint}`)
        await wait(error)
        return 'repeat'
      },
    })
  } catch (fault) {
    error = fault as Error
  } finally {
    end()
    interrupt.end()
  }
  return { state, hasRefused, stopped: interrupt.isRequested, error }
}

const doublingHint =
  'The next lines may be stored already, and one without external_id is stored again each time it is sent. Look them up before you continue.'

async function* skipping(batches: AsyncIterable<ImportItem[]>, lines: number): AsyncGenerator<ImportItem[]> {
  for await (const batch of batches)
    yield lines === 0 ? batch : batch.filter(item => item.isRefused || item.line > lines)
}

/** The names of the columns. Throws an Error if they are not UTF-8. */
export function headerOf({ cells }: CsvHead): string[] {
  try {
    return cells.map(textOf)
  } catch {
    throw new Error('The header of the file is not UTF-8. Name the encoding of the file with --encoding.')
  }
}

export const formatLines = (count: number) => `${formatCount(count)} ${count === 1 ? 'line' : 'lines'}`

/** The result members that say how the file ended. */
export const endOf = ({ state: { failed, line }, stopped, error }: Outcome, refused: RejectsFile) => ({
  refused_file: failed > 0 ? refused.name : null,
  stopped_after: stopped || error ? line : null,
  error: error && errorMessage(error),
})

/** The result of a command that sent a file: `value`, or the lines of `summary`. The command exits with 1 unless all lines are done. */
export function resultOf(
  { state: { received, failed }, stopped, error }: Outcome,
  { value, summary }: { value: object; summary: string[] },
): Result {
  if (stopped || error || failed > 0) process.exitCode = 1
  return { value, messages: [...(error ? [errorMessage(error)] : []), ...(error && received === 0 ? [] : summary)] }
}

/** The first line of a summary. `note` follows the duration. */
export function countsText(received: number, seconds: number, counts: Record<string, number>, note = ''): string {
  const parts = Object.entries(counts).map(([name, count]) => `${formatCount(count)} ${name}`)
  return `${formatLines(received)} in ${formatDuration(seconds)}${note}: ${parts.join(', ')}`
}

/** Returns a hint with the file of the refused lines. */
export const refusedHints = ({ failed }: ImportState, { name }: RejectsFile): string[] =>
  failed > 0 ? [`Refused lines and their reasons are in ${name}. Correct that file and import it.`] : []

/** Returns hints about how the file was read and how to continue. */
export function closingHints(
  { state: { line }, hasRefused, stopped, error }: Outcome,
  { file, input, options }: { file: string; input: Input; options: { encoding?: string; skipLines: number } },
): string[] {
  return [
    ...(options.encoding === undefined && input.encoding() === 'windows-1252' ? [encodingHint(file)] : []),
    ...(hasRefused && options.skipLines > 0
      ? [`--skip-lines skipped none of the lines that were refused before.`]
      : []),
    ...(stopped || error ? [continueHint(file === '-' || hasRefused ? null : line, line)] : []),
  ]
}

const encodingHint = (file: string) =>
  `${file} is not UTF-8, and was read as windows-1252. Name another encoding with --encoding.`

/** `skippable` is the line for --skip-lines; null if the option does not apply to the file. */
function continueHint(skippable: number | null, line: number): string {
  const option = skippable === null ? 'only the remaining lines' : `--skip-lines ${skippable}`
  return `Stopped after line ${line}. To continue, run the command again with ${option}, or with all lines: lines already stored change nothing.`
}
