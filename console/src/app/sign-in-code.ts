let code: string | null = null

/**
 * Removes the one-time code of a sign-in link or an invitation from the address, so that no history keeps it, even if
 * the page fails.
 */
export function hideSignInCode(): void {
  code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(history.state, '', location.pathname + location.search)
}

/** Returns the code of the link that opened the document, only once. */
export function takeSignInCode(): string | null {
  const taken = code
  code = null
  return taken
}
