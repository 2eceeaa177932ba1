/** The address of the sign-in: where the person wanted to go, and why a sign-in at the outside issuer failed. */
export type SignInSearch = { next?: string; error?: string }

/** Keeps a next page only if it is one of the console, so that a link cannot lead to another host. */
export function validateSignInSearch({ next, error }: Record<string, unknown>): SignInSearch {
  return {
    ...(typeof next === 'string' && /^\/(?![/\\])/.test(next) && { next }),
    ...(typeof error === 'string' && { error }),
  }
}
