import { useBlocker } from '@tanstack/react-router'
import { useMessages } from '../app/language.tsx'
import { messages } from './messages.ts'

/**
 * Asks before the page is left or reloaded with unsaved input. Below a dialog, only the browser's buttons leave a page:
 * the navigation after a write of the dialog is intended.
 */
export function useUnsaved(isUnsaved: () => boolean, isInDialog = false): void {
  const texts = useMessages(messages)
  useBlocker({
    shouldBlockFn: ({ action }) =>
      isUnsaved() && !(isInDialog && (action === 'PUSH' || action === 'REPLACE')) && !window.confirm(texts.unsaved),
    enableBeforeUnload: isUnsaved,
  })
}
