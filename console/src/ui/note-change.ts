import { createContext, useContext } from 'react'

export const NoteChangeContext = createContext<(name?: string) => void>(() => {})

/**
 * A function that a field calls with its name when its value is changed: the dialog around it then does not close without a question, and
 * the form no longer shows the error of the value of before.
 */
export const useNoteChange = () => useContext(NoteChangeContext)
