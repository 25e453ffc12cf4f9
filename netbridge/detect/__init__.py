"""Detection: Faster R-CNN over our residual networks, in plain torch, on COCO and on made-up data in its format.

The backbone is the same run of the solver as a classifier's, so its stiffness is measured as theirs. How a training
goes, and how it goes on, is `netbridge.train`'s; average precision is computed by pycocotools.
"""

from netbridge.detect.boxes import box_iou as box_iou
from netbridge.detect.coco import Coco as Coco
from netbridge.detect.coco import load as load
from netbridge.detect.detector import Detector as Detector
from netbridge.detect.evaluation import average_precision as average_precision
from netbridge.detect.evaluation import results as results
from netbridge.detect.made_up_scenes import shapes as shapes
from netbridge.detect.pooling import roi_align as roi_align
from netbridge.detect.settings import SMALL as SMALL
from netbridge.detect.settings import Settings as Settings
from netbridge.detect.suppression import nms as nms
from netbridge.detect.training import SCHEDULES as SCHEDULES
from netbridge.detect.training import train as train
