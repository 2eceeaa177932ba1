import { QueryClientProvider } from '@tanstack/react-query'
import { RouterProvider } from '@tanstack/react-router'
import { createRoot } from 'react-dom/client'
import './ui/base.css'
import { dropInvalidLanguages } from './app/browser-languages.ts'
import { LanguageProvider } from './app/language.tsx'
import { queryClient } from './app/query-client.ts'
import { router } from './app/router.tsx'
import { hideSignInCode } from './app/sign-in-code.ts'
import { nameAnnouncements } from './ui/announcements.ts'

hideSignInCode()
dropInvalidLanguages()
nameAnnouncements()
createRoot(document.getElementById('root')!).render(
  <LanguageProvider>
    <QueryClientProvider client={queryClient}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </LanguageProvider>,
)
