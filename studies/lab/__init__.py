"""What studies share: their records, pages, statistics, figures, and the networks and images they look at.

No study is told here, and no formula of numerics stands here."""
