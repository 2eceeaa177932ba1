/** `ok` needs no action, `warning` needs a look soon, `wrong` needs a fix now. */
export type Verdict = 'ok' | 'warning' | 'wrong'

/** The finding of a check. `advice` says what to do, and is absent if the finding is `ok`. */
export type Finding = { check: string; verdict: Verdict; message: string; advice?: string }

/** A finding about one organization contains its key. */
export type OrganizationFinding = Finding & { organization?: string }

/** The result of a check, which may have several findings. */
export type Found = OrganizationFinding | OrganizationFinding[]

export const ok = (check: string, message: string): Finding => ({ check, verdict: 'ok', message })

export const warning = (
  check: string,
  message: string,
  advice: string,
  organization?: string,
): OrganizationFinding => ({ check, verdict: 'warning', message, advice, ...(organization && { organization }) })

export const wrong = (check: string, message: string, advice: string, organization?: string): OrganizationFinding => ({
  ...warning(check, message, advice, organization),
  verdict: 'wrong',
})

/** Runs a check. If the check throws, the finding is `wrong`, with the error's message. */
export async function runCheck(
  check: string,
  advice: string,
  work: () => Promise<Found>,
): Promise<OrganizationFinding[]> {
  try {
    return [await work()].flat()
  } catch (error) {
    return [wrong(check, (error as Error).message, advice)]
  }
}
