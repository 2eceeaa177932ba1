import { prettyFactory } from 'pino-pretty'

type Entry = { msg?: string; [member: string]: unknown }

/** Creates a function that formats a JSON log entry as one readable line, in local time. */
export function createPrettifier({ colors }: { colors: boolean }): (json: string) => string {
  const prettify = prettyFactory({ colorize: colors, singleLine: true, translateTime: 'SYS:HH:MM:ss.l' })
  return json => prettify(withReadableMessage(JSON.parse(json)))
}

/** The entry with its most important members moved into its message. */
function withReadableMessage(entry: Entry): Entry {
  if (entry.msg === 'request') {
    const { method, route, status, aborted, duration_ms: durationMs, ...rest } = entry
    return { ...rest, msg: `${method} ${route} ${aborted ? 'aborted' : status} in ${durationMs} ms` }
  }
  if (Array.isArray(entry.first_steps)) {
    const { address, console: link, first_steps: firstSteps, hint, msg, ...rest } = entry
    const opening = link
      ? ['', 'Sign in to the console within a minute (kith console prints another link):', '', `  ${link}`]
      : []
    return { ...rest, msg: [msg, ...opening, '', hint, '', ...firstSteps.map(step => `  ${step}`), ''].join('\n') }
  }
  if (typeof entry.stack === 'string') {
    const { stack, msg, ...rest } = entry
    return { ...rest, msg: [msg, stack].filter(Boolean).join('\n') }
  }
  return entry
}
