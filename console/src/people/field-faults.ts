import { KithError } from '@kith/client'

/** The fault that the service found at a field of the body, for the field that holds it. */
export function faultAt(error: unknown, path: string): string | undefined {
  return error instanceof KithError ? error.details.find(detail => detail.path === path)?.message : undefined
}

/** Whether an error says more than what stands at these fields. */
export function otherFaults(error: unknown, paths: readonly string[]): boolean {
  if (!error) return false
  if (!(error instanceof KithError) || error.details.length === 0) return true
  return error.details.some(({ path }) => !paths.includes(path))
}
