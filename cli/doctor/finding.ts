/** `ok` needs no action, `warning` needs a look soon, `wrong` needs a fix now. */
export type Verdict = 'ok' | 'warning' | 'wrong'

/** The finding of a check. `advice` says what to do; a finding that is `ok` has none. */
export type Finding = { check: string; verdict: Verdict; message: string; advice?: string }

export const ok = (check: string, message: string): Finding => ({ check, verdict: 'ok', message })

export const warning = (check: string, message: string, advice: string): Finding => ({
  check,
  verdict: 'warning',
  message,
  advice,
})

export const wrong = (check: string, message: string, advice: string): Finding => ({
  check,
  verdict: 'wrong',
  message,
  advice,
})

/** Runs a check. A check that throws is itself `wrong`, with the error's message. */
export async function runCheck(
  check: string,
  advice: string,
  work: () => Finding[] | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await work()
  } catch (error) {
    return [wrong(check, (error as Error).message, advice)]
  }
}
