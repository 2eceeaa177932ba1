/** `ok` asks for nothing, `warning` for a look soon, `wrong` for something to be done now. */
export type Verdict = 'ok' | 'warning' | 'wrong'

/** What a check found. `advice` says what to do; what is ok has none. */
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

/** Runs a check; one that cannot be carried out is itself something wrong. */
export async function attempt(
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
